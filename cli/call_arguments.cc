#include "cli/call_arguments.h"

#include "base/file_system.h"
#include "base/printable.h"
#include "cache/store.h"
#include "cli/session.h"
#include "cli/validators.h"

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

constexpr std::size_t kLongestVariant = 200;

std::string name_of(const std::string& place, const internal::CallLine& line) {
  return line.variant.empty()
             ? place
             : absl::StrFormat("%s (%s)", place, shortened(line.variant, kLongestVariant));
}

}  // namespace

absl::Status must_be_there(const std::string& what, const std::string& path) {
  const auto info = real_file_system().stat(path);
  if (info.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s must be a file: %s", what, reason_of(info.status())));
}

absl::StatusOr<const Signature*> find_signature(Runtime& runtime, std::string_view op) {
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(const OpType* type, runtime.op_type(op));
  return &type->signature;
}

namespace {

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
      if (!known.ok()) return absl::InvalidArgumentError(reason_of(known.status()));
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

}  // namespace

absl::StatusOr<ParsedCall> parse_one_call(Runtime& runtime, const std::vector<std::string>& words) {
  KILN_ASSIGN_OR_RETURN(std::vector<NamedCall> calls,
                        parse_call_words(runtime, words, internal::kMaxGeneratedCalls));
  if (calls.size() != 1) {
    return absl::InvalidArgumentError(absl::StrFormat("call: must be one: got %d", calls.size()));
  }
  return std::move(calls.front().call);
}

CLI::Option* add_call_file_options(CLI::App& command, CallSource& source) {
  CLI::Option* const file =
      command.add_option("--calls", source.file, "a file with one CALL a line; - is stdin")
          ->type_name("FILE");
  command
      .add_option("--max-calls", source.max_calls,
                  "calls that lines with lists and ranges may make in all")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command.add_option("--max-size", source.max_size, "bytes that the file may hold, as 64M or 1G")
      ->type_name("BYTES")
      ->check(a_size())
      ->capture_default_str();
  return file;
}

absl::StatusOr<std::vector<NamedCall>> read_call_file(Runtime& runtime, const CallSource& source) {
  KILN_ASSIGN_OR_RETURN(const std::int64_t most, cache::parse_bytes(source.max_size));
  const std::string name = source.file == "-" ? "stdin" : source.file;
  KILN_ASSIGN_OR_RETURN(
      const std::string text,
      read_input(source.file, most, "; raise the limit if it is meant (--max-size)"));
  KILN_ASSIGN_OR_RETURN(std::vector<internal::CallLine> lines,
                        internal::parse_calls(text, name, finder(runtime), source.max_calls));
  std::vector<NamedCall> calls;
  for (internal::CallLine& line : lines) {
    calls.push_back(
        {name_of(absl::StrFormat("%s:%d", name, line.line), line), std::move(line.call)});
  }
  return calls;
}

absl::StatusOr<std::vector<NamedCall>> read_calls(Runtime& runtime, const CallSource& source) {
  if (source.file.empty() == source.words.empty()) {
    return absl::InvalidArgumentError(
        source.file.empty() ? "calls must be given: want --calls FILE or CALLs, got neither"
                            : "calls must be given once: want --calls FILE or CALLs, got both");
  }
  return source.file.empty() ? parse_call_words(runtime, source.words, source.max_calls)
                             : read_call_file(runtime, source);
}

}  // namespace kiln::cli
