#ifndef KILN_CLI_SESSION_H_
#define KILN_CLI_SESSION_H_

#include <kiln/status.h>

#include <absl/strings/str_format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace CLI {
class App;
}

// What the subcommands of `kiln` share. Each subcommand is one file with one function that adds it;
// what it does runs after the command line has been read, so that `kiln --help` loads nothing.
namespace kiln::cli {

using Json = nlohmann::ordered_json;

// How `kiln` ends. Scripts rely on these numbers.
enum class Exit {
  ok = 0,
  usage = 2,          // bad flags, a malformed CALL, an unknown op, field, arch or board
  cannot_do = 3,      // no implementation, a failed build or check, no device
  interrupted = 130,  // by Ctrl-C, after it has said what was done
  terminated = 143,   // the same by SIGTERM
};

struct Session {
  bool json = false;
  std::function<absl::StatusOr<Exit>()> command;  // of the subcommand that was named
};

// Wrong usage for bad input, except for a source that does not compile: that was asked for rightly.
Exit exit_for(const absl::Status& status);

// All that is printed goes through these four: names and values come from files, and must neither
// command a terminal (base/printable.h) nor fill it.
//
// For people: to stdout, and to stderr.
void print_text(std::FILE* file, const std::string& text);
template <class... A>
void print(const absl::FormatSpec<A...>& format, const A&... values) {
  print_text(stdout, absl::StrFormat(format, values...));
}
template <class... A>
void tell(const absl::FormatSpec<A...>& format, const A&... values) {
  print_text(stderr, absl::StrFormat(format, values...));
}
// For programs.
void print_json(const Json& json);
// The message on stderr and, with --json, {"error":{"kind","message"}} on stdout.
void report_error(const Session& session, const absl::Status& status);

// The message of `status`, without the middle of a line that is too long.
std::string reason_of(const absl::Status& status);
// What a file may hold that is read into memory whole.
inline constexpr std::int64_t kMostInput = std::int64_t{1} << 30;

// "0.123 s", whatever the locale.
std::string seconds_text(double seconds);
// `text` with every line but the first indented by `spaces`.
std::string indented(const std::string& text, int spaces);
// The contents of a file, or of stdin for "-". InvalidArgument names the file and why it cannot be
// read, or that it holds more than `most` bytes, with the advice.
absl::StatusOr<std::string> read_input(const std::string& path, std::int64_t most = kMostInput,
                                       const std::string& advice = "");

void add_ops(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_warm(CLI::App& app, Session& session);
void add_compile(CLI::App& app, Session& session);
void add_cache(CLI::App& app, Session& session);
void add_why(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_probe_plugin(CLI::App& app, Session& session);
// `kiln help`, `kiln completion` and `kiln man`.
void add_help(CLI::App& app, Session& session);

// What `kiln --version` prints: the first line is "kiln 1.2.3".
std::string version_text();

}  // namespace kiln::cli

#endif  // KILN_CLI_SESSION_H_
