#ifndef KILN_CLI_COMMAND_TREE_H_
#define KILN_CLI_COMMAND_TREE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The definition of the command line, walked. Pointers live as long as the App.
namespace kiln::cli {

struct Command {
  std::string path;  // "kiln cache export"
  const CLI::App* app = nullptr;
  std::vector<const CLI::App*> children;
  std::vector<const CLI::Option*> options;      // its own, those without a name left out
  std::vector<const CLI::Option*> positionals;  // in order
};

// `app` first, then what is below it, in the order of --help; hidden ones are left out.
std::vector<Command> commands_of(const CLI::App& app);

bool takes_value(const CLI::Option& option);
// "--calls FILE", "-h, --help".
std::string words_of(const CLI::Option& option);
// " [OPTIONS] [CALL...]"
std::string usage_of(const Command& command);

// What can follow where a value of a type is expected.
struct Values {
  bool files = false;
  bool ops = false;
  std::vector<std::string> words;
};
Values values_of(const CLI::Option& option);

}  // namespace kiln::cli

#endif  // KILN_CLI_COMMAND_TREE_H_
