#include "cli/call_arguments.h"

#include "base/file_system.h"
#include "cli/session.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>

namespace kiln::cli {
namespace {

bool is_object(std::string_view word) {
  const std::size_t first = word.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && word[first] == '{';
}

internal::FindSignature finder(Runtime& runtime) {
  return [&runtime](std::string_view op) { return find_signature(runtime, op); };
}

std::string name_of(const std::string& place, const internal::CallLine& line) {
  return line.variant.empty() ? place : absl::StrFormat("%s (%s)", place, line.variant);
}

}  // namespace

absl::Status must_be_there(const std::string& what, const std::string& path) {
  const auto info = real_file_system().stat(path);
  if (info.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s must be a file: %s", what, message_of(info.status())));
}

absl::StatusOr<const Signature*> find_signature(Runtime& runtime, std::string_view op) {
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(const OpType* type, runtime.op_type(op));
  return &type->signature;
}

absl::StatusOr<std::vector<NamedCall>> parse_call_words(Runtime& runtime,
                                                        const std::vector<std::string>& words,
                                                        std::int64_t limit) {
  std::vector<NamedCall> calls;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string op;
    if (!is_object(words[i])) {
      // An unknown op is the likelier mistake than a missing object, so it is looked for first.
      op = words[i];
      const absl::StatusOr<const Signature*> known = find_signature(runtime, op);
      if (!known.ok()) return absl::InvalidArgumentError(message_of(known.status()));
      if (++i == words.size() || !is_object(words[i])) {
        return absl::InvalidArgumentError(
            absl::StrFormat("call: %s must be followed by its JSON object: got %s", op,
                            i == words.size() ? "nothing" : absl::StripAsciiWhitespace(words[i])));
      }
    }
    KILN_ASSIGN_OR_RETURN(std::vector<internal::CallLine> lines,
                          internal::parse_call_line(words[i], finder(runtime), op, limit));
    if (!lines.front().variant.empty()) limit -= static_cast<std::int64_t>(lines.size());
    for (internal::CallLine& line : lines)
      calls.push_back({name_of(line.call.op, line), std::move(line.call)});
  }
  return calls;
}

absl::StatusOr<ParsedCall> parse_one_call(Runtime& runtime, const std::vector<std::string>& words) {
  KILN_ASSIGN_OR_RETURN(std::vector<NamedCall> calls, parse_call_words(runtime, words));
  if (calls.size() != 1) {
    return absl::InvalidArgumentError(absl::StrFormat("call: must be one: got %d", calls.size()));
  }
  return std::move(calls.front().call);
}

absl::StatusOr<std::vector<NamedCall>> read_call_file(Runtime& runtime, const std::string& path,
                                                      std::int64_t limit) {
  KILN_ASSIGN_OR_RETURN(const std::string text, read_input(path));
  const std::string name = path == "-" ? "stdin" : path;
  KILN_ASSIGN_OR_RETURN(std::vector<internal::CallLine> lines,
                        internal::parse_calls(text, name, finder(runtime), limit));
  std::vector<NamedCall> calls;
  for (internal::CallLine& line : lines) {
    calls.push_back(
        {name_of(absl::StrFormat("%s:%d", name, line.line), line), std::move(line.call)});
  }
  return calls;
}

}  // namespace kiln::cli
