#ifndef KILN_CLI_CALL_ARGUMENTS_H_
#define KILN_CLI_CALL_ARGUMENTS_H_

#include <kiln/runtime.h>
#include <kiln/status.h>

#include "runtime/call_json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cli {

using internal::ParsedCall;

// A call with the words that name it in reports: "calls.jsonl:3" or its op, and which one it is of
// those that its line stands for.
struct NamedCall {
  std::string name;
  ParsedCall call;
};

// The signature of an op that `runtime` knows.
absl::StatusOr<const Signature*> find_signature(Runtime& runtime, std::string_view op);

// The calls of command-line words: each is an object with "op", or an op followed by an object, and
// may stand for many calls, of which at most `limit` are made.
absl::StatusOr<std::vector<NamedCall>> parse_call_words(
    Runtime& runtime, const std::vector<std::string>& words,
    std::int64_t limit = internal::kMaxGeneratedCalls);
// The same where one call is wanted.
absl::StatusOr<ParsedCall> parse_one_call(Runtime& runtime, const std::vector<std::string>& words);
// The calls of a file; "-" is stdin.
absl::StatusOr<std::vector<NamedCall>> read_call_file(
    Runtime& runtime, const std::string& path, std::int64_t limit = internal::kMaxGeneratedCalls);

// InvalidArgument, naming `what`, where no file of that name can be seen.
absl::Status must_be_there(const std::string& what, const std::string& path);

}  // namespace kiln::cli

#endif  // KILN_CLI_CALL_ARGUMENTS_H_
