#ifndef KILN_CLI_CALL_ARGUMENTS_H_
#define KILN_CLI_CALL_ARGUMENTS_H_

#include <kiln/runtime.h>
#include <kiln/status.h>

#include "runtime/call_json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

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

// Where calls come from, and how many they may be. What is more is an error, so that a mistake does
// not become a day's work or all of memory; either limit is raised by its option.
struct CallSource {
  std::string file;                                       // --calls; "-" is stdin
  std::vector<std::string> words;                         // CALL
  std::int64_t max_calls = internal::kMaxGeneratedCalls;  // of lines that stand for many
  std::string max_size = "64M";                           // of the file
};
// --calls with --max-calls and --max-size; returns the first.
CLI::Option* add_call_file_options(CLI::App& command, CallSource& source);
// The calls of the file.
absl::StatusOr<std::vector<NamedCall>> read_call_file(Runtime& runtime, const CallSource& source);
// Those of the file or of the words, of which one must be given. A word is an object with "op", or
// an op followed by an object, and may stand for many calls.
absl::StatusOr<std::vector<NamedCall>> read_calls(Runtime& runtime, const CallSource& source);
// The one call that words are.
absl::StatusOr<ParsedCall> parse_one_call(Runtime& runtime, const std::vector<std::string>& words);

// InvalidArgument, naming `what`, where no file of that name can be seen.
absl::Status must_be_there(const std::string& what, const std::string& path);

}  // namespace kiln::cli

#endif  // KILN_CLI_CALL_ARGUMENTS_H_
