#include "cli/bench.h"
#include "cli/session.h"
#include "cli/tune_child.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using kiln::cli::Exit;
using kiln::cli::Session;

// A command line that cannot be read has no parsed flags, so --json is looked for by hand.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

// What is wrong with a command line. The parser looks at what is missing first, and says "A
// subcommand is required" of `kiln rum`; a word it does not know is the likelier mistake.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  std::erase(unknown, "--");  // is in its place anywhere
  if (!unknown.empty()) return "The following argument was not expected: " + unknown.front();
  // "Could not convert: --jobs = many"
  std::string text = error.what();
  const std::string_view could_not = "Could not convert: ";
  const std::size_t is = text.find(" = ");
  if (!text.starts_with(could_not) || is == std::string::npos) return text;
  return text.substr(could_not.size(), is - could_not.size()) + " must be a number: got " +
         text.substr(is + 3);
}

// The name of an option or argument that was given an empty value, "" if there is none: a variable
// that is not set, most likely, and not the absence of the option.
std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) return option->get_name();
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string name = empty_option(*command); !name.empty()) return name;
  }
  return "";
}

absl::Status must_not_be_empty(const std::string& name) {
  return absl::InvalidArgumentError(name + " must not be empty: got \"\"");
}

void build_app(CLI::App& app, Session& session) {
  app.set_version_flag("--version", kiln::cli::version_text, "print versions and exit");
  app.add_flag("--json", session.json, "print JSON");
  app.require_subcommand(1);
  app.fallthrough();
  kiln::cli::add_ops(app, session);
  kiln::cli::add_explain(app, session);
  kiln::cli::add_run(app, session);
  kiln::cli::add_warm(app, session);
  kiln::cli::add_compile(app, session);
  kiln::cli::add_cache(app, session);
  kiln::cli::add_tune(app, session);
  kiln::cli::add_tune_child(app, session);
  kiln::cli::add_why(app, session);
  kiln::cli::add_check(app, session);
  kiln::cli::add_bench(app, session);
  kiln::cli::add_doctor(app, session);
  kiln::cli::add_probe_plugin(app, session);
  kiln::cli::add_help(app, session);
  app.footer(
      "A CALL is an op with its JSON:\n"
      "  LayerNormFwdOp '{\"params\":{\"normalized_shape\":[4096]},\n"
      "                   \"inputs\":{\"x\":{\"dtype\":\"float16\",\"shape\":[8192,4096]}}}'\n"
      "or that object alone with a field \"op\"; see docs/call_format.md.\n\n"
      "Exit codes: 0 ok, 2 wrong usage, 3 cannot be done, 130 interrupted, 143 terminated.\n"
      "`kiln help COMMAND` shows examples, `kiln help environment` the variables.");
}

int run(int argc, char** argv) {
  CLI::App app("Kiln builds GPU kernels on first call.", "kiln");
  Session session;
  build_app(app, session);
  // The parser would take a word in brackets for a list of its own, and apart; after a space it is
  // what it was.
  std::vector<std::string> words;
  for (int i = argc; --i > 0;) {
    words.emplace_back(argv[i]);
    if (words.back().starts_with('[')) words.back().insert(0, " ");
  }
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    session.json = wants_json(argc, argv);
    const std::string empty = empty_option(app);  // "must be a number" says less
    kiln::cli::report_error(session, empty.empty() ? absl::InvalidArgumentError(usage_error(app, e))
                                                   : must_not_be_empty(empty));
    kiln::cli::tell("Run with --help for more information.\n");
    return static_cast<int>(Exit::usage);
  }
  if (const std::string name = empty_option(app); !name.empty()) {
    kiln::cli::report_error(session, must_not_be_empty(name));
    return static_cast<int>(Exit::usage);
  }
  const absl::StatusOr<Exit> result = session.command();
  if (result.ok()) return static_cast<int>(*result);
  kiln::cli::report_error(session, result.status());
  return static_cast<int>(kiln::cli::exit_for(result.status()));
}

// Files opened later must not become stdin, stdout or stderr because those were closed. What is
// written to such a place fails, as it would to a closed one.
void fill_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
  }
}

// An output that could not be written whole is no success.
int with_output(int code) {
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost) return code;
  kiln::cli::tell("kiln: stdout must take all that is printed: %s\n", std::strerror(errno));
  return code == 0 ? static_cast<int>(Exit::cannot_do) : code;
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond the limit is an error of its write
  try {
    return with_output(run(argc, argv));
  } catch (const std::exception& e) {  // out of memory, most likely
    kiln::cli::tell("kiln: %s\n", e.what());
    return static_cast<int>(Exit::cannot_do);
  }
}
