#include "cli/command_tree.h"

#include "runtime/boards.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>

namespace kiln::cli {
namespace {

void walk(const CLI::App& app, const std::string& above, std::vector<Command>& out) {
  Command command;
  command.path = above.empty() ? app.get_name() : above + " " + app.get_name();
  command.app = &app;
  command.children =
      app.get_subcommands([](const CLI::App* child) { return !child->get_group().empty(); });
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.positionals : command.options).push_back(option);
  }
  const std::vector<const CLI::App*> children = command.children;
  const std::string path = command.path;
  out.push_back(std::move(command));
  for (const CLI::App* child : children) walk(*child, path, out);
}

}  // namespace

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> out;
  walk(app, "", out);
  return out;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string words_of(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  return takes_value(option) ? out + " " + option.get_type_name() : out;
}

std::string usage_of(const Command& command) {
  std::string out = command.options.empty() ? "" : " [OPTIONS]";
  for (const CLI::Option* positional : command.positionals) {
    const std::string name = positional->get_name(/*positional=*/true);
    out += positional->get_required() ? " " + name : " [" + name + "]";
    if (positional->get_items_expected_max() > 1) out += "...";
  }
  return out;
}

Values values_of(const CLI::Option& option) {
  // A positional is named after what it takes.
  const std::string type =
      option.get_positional() ? option.get_name(/*positional=*/true) : option.get_type_name();
  Values values;
  values.files = type == "FILE" || type == "PACK" || type == "WHAT";
  values.ops = type == "CALL" || type == "OP";
  if (type == "BOARD") {
    for (const Board& board : boards()) values.words.emplace_back(board.name);
  } else if (type == "ARCH") {
    std::set<int> archs;
    for (const Board& board : boards()) archs.insert(board.arch);
    for (int arch : archs) values.words.push_back(std::to_string(arch));
  } else if (type == "DEVICE") {
    values.words = {"cuda:0", "cpu"};
  } else if (type == "SHELL") {
    values.words = {"bash", "zsh", "fish"};
  } else if (type == "POLICY") {
    values.words = {"block", "async", "forbid"};
  }
  return values;
}

}  // namespace kiln::cli
