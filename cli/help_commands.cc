#include "cli/command_tree.h"
#include "cli/help.h"
#include "cli/session.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <memory>
#include <vector>

// `kiln help`, `kiln completion` and `kiln man`: all of it made of the definition of the commands.
namespace kiln::cli {
namespace {

void print_environment() {
  for (const Variable& variable : environment()) print("%-24s %s\n", variable.name, variable.means);
}

absl::StatusOr<Exit> help(const CLI::App& app, const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"environment"}) {
    print_environment();
    return Exit::ok;
  }
  const std::string path = absl::StrJoin(words, " ");
  std::vector<std::string> known;
  for (const Command& command : commands_of(app)) {
    if (command.path == "kiln" + (path.empty() ? "" : " " + path)) {
      // App::help would show the command that runs, which is this one.
      const std::string above = command.path.substr(0, command.path.rfind(' '));
      print("%s", command.app == &app ? app.get_formatter()->make_help(&app, app.get_name(),
                                                                       CLI::AppFormatMode::Normal)
                                      : command.app->help(above));
      return Exit::ok;
    }
    if (command.app != &app) known.push_back(command.path.substr(sizeof "kiln"));
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("help: there must be such a page: want environment, %s; got %s",
                      absl::StrJoin(known, ", "), path));
}

absl::StatusOr<Exit> completion(const CLI::App& app, const std::string& shell) {
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    return absl::InvalidArgumentError("SHELL must be bash, zsh or fish: got " + shell);
  }
  const std::string script = shell == "bash"  ? bash_completion(app)
                             : shell == "zsh" ? zsh_completion(app)
                                              : fish_completion(app);
  print("%s", script);
  return Exit::ok;
}

}  // namespace

void add_help(CLI::App& app, Session& session) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help_command = app.add_subcommand("help", "the page of a command, or: environment");
  help_command->add_option("COMMAND", *words, "as: cache export");
  examples(*help_command, {{"kiln help cache export", "options and examples of a command"},
                           {"kiln help environment", "the variables that kiln reads"}});
  help_command->callback(
      [&app, &session, words] { session.command = [&app, words] { return help(app, *words); }; });

  auto shell = std::make_shared<std::string>();
  CLI::App* completion_command =
      app.add_subcommand("completion", "print what completes kiln in a shell");
  completion_command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  examples(*completion_command,
           {{"source <(kiln completion bash)", "in ~/.bashrc; zsh takes the same in ~/.zshrc"},
            {"kiln completion fish > ~/.config/fish/completions/kiln.fish", "once"}});
  completion_command->callback([&app, &session, shell] {
    session.command = [&app, shell] { return completion(app, *shell); };
  });

  CLI::App* man = app.add_subcommand("man", "print the manual page, as troff");
  examples(*man, {{"kiln man | man -l -", "read it"}});
  man->callback([&app, &session] {
    session.command = [&app]() -> absl::StatusOr<Exit> {
      print("%s", manual_page(app));
      return Exit::ok;
    };
  });
}

}  // namespace kiln::cli
