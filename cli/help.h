#ifndef KILN_CLI_HELP_H_
#define KILN_CLI_HELP_H_

#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
}

// What is made of the definition of the command line, so that it cannot drift from it: the examples
// of --help, the manual page, and the shells' completion.
namespace kiln::cli {

struct Example {
  std::string command;
  std::string means;
};
// Shown by `--help` and in the manual page.
void examples(CLI::App& command, std::initializer_list<Example> list);

// An environment variable and what it means.
struct Variable {
  std::string name;
  std::string means;
};
std::vector<Variable> environment();

// The manual page kiln(1) as troff.
std::string manual_page(const CLI::App& app);

// What completes `kiln` in a shell, to be read by it.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace kiln::cli

#endif  // KILN_CLI_HELP_H_
