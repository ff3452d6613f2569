#include "cli/command_tree.h"
#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <string>
#include <vector>

// All three scripts do the same: they follow the words to the command that is being typed, and
// offer what may come next there. Ops are asked of `kiln ops --names`, since plugins bring some.
namespace kiln::cli {
namespace {

// Text inside '...' of a shell.
std::string quoted(const std::string& text) {
  return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

// Options hold for all commands below the one that has them.
std::vector<const CLI::Option*> options_in_force(const std::vector<Command>& commands,
                                                 const Command& command) {
  std::vector<const CLI::Option*> out;
  for (const Command& other : commands) {
    const bool is_above = command.path == other.path || command.path.starts_with(other.path + " ");
    for (const CLI::Option* option : other.options) {
      // Those that only the program itself has.
      const bool own = option->get_name() == "--version" || option->get_name() == "--help";
      if (is_above && (!own || other.path == command.path)) out.push_back(option);
    }
  }
  return out;
}

// "kiln cache|kiln cache export|...": every path but the program's own.
std::string paths(const std::vector<Command>& commands, const char* quote) {
  std::vector<std::string> list;
  for (std::size_t i = 1; i < commands.size(); ++i)
    list.push_back(quote + commands[i].path + quote);
  return absl::StrJoin(list, *quote == '\'' ? " " : "|");
}

// A line for each option that takes a value: `pattern` of "path:option" and what completes it.
template <class Action>
std::string value_cases(const std::vector<Command>& commands, Action action) {
  std::string out;
  for (const Command& command : commands) {
    for (const CLI::Option* option : command.options) {
      if (!takes_value(*option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : names_of(*option))
        patterns.push_back("\"" + command.path + ":" + name + "\"");
      out += "    " + absl::StrJoin(patterns, "|") + ") " + action(values_of(*option)) + ";;\n";
    }
  }
  return out;
}

Values positional_values(const Command& command) {
  return command.positionals.empty() ? Values{} : values_of(*command.positionals.front());
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  const auto action = [](const Values& values) -> std::string {
    if (values.files)
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return";
    if (values.words.empty()) return "return";
    return "mapfile -t COMPREPLY < <(compgen -W \"" + absl::StrJoin(values.words, " ") +
           "\" -- \"$cur\"); return";
  };
  std::string out =
      "# bash completion of kiln; made by: kiln completion bash\n"
      "_kiln() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=kiln i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$at ${COMP_WORDS[i]}\" in\n"
      "      " +
      paths(commands, "\"") +
      ") at=\"$at ${COMP_WORDS[i]}\";;\n"
      "    esac\n"
      "  done\n"
      "  case \"$at:$prev\" in\n" +
      value_cases(commands, action) +
      "  esac\n"
      "  local words= files= ops=\n"
      "  case \"$at\" in\n";
  for (const Command& command : commands) {
    std::vector<std::string> words = positional_values(command).words;
    for (const CLI::App* child : command.children) words.push_back(child->get_name());
    for (const CLI::Option* option : options_in_force(commands, command)) {
      for (const std::string& name : names_of(*option)) words.push_back(name);
    }
    const Values values = positional_values(command);
    out += "    \"" + command.path + "\") words=\"" + absl::StrJoin(words, " ") + "\"" +
           (values.files ? " files=1" : "") + (values.ops ? " ops=1" : "") + ";;\n";
  }
  return out +
         "  esac\n"
         "  [[ $ops && $cur != -* ]] && words+=\" $(kiln ops --names 2>/dev/null)\"\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; "
         "[[ $files ]] && compgen -f -- \"$cur\")\n"
         "  [[ $files ]] && compopt -o filenames 2>/dev/null\n"
         "  return 0\n"
         "}\n"
         "complete -F _kiln kiln\n";
}

std::string zsh_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  const auto described = [](const std::string& word, const std::string& text) {
    return quoted(absl::StrReplaceAll(word, {{":", "\\:"}}) + ":" + text);
  };
  const auto action = [](const Values& values) -> std::string {
    if (values.files) return "_files; return";
    if (values.words.empty()) return "return";
    return "compadd -- " + absl::StrJoin(values.words, " ") + "; return";
  };
  std::string out =
      "#compdef kiln\n"
      "# zsh completion of kiln; made by: kiln completion zsh\n"
      "_kiln() {\n"
      "  local prev=${words[CURRENT-1]} at=kiln i\n"
      "  local -a list\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"$at ${words[i]}\" in\n"
      "      (" +
      paths(commands, "\"") +
      ") at=\"$at ${words[i]}\";;\n"
      "    esac\n"
      "  done\n"
      "  case \"$at:$prev\" in\n" +
      value_cases(commands, action) +
      "  esac\n"
      "  case \"$at\" in\n";
  for (const Command& command : commands) {
    std::vector<std::string> list;
    for (const CLI::App* child : command.children)
      list.push_back(described(child->get_name(), child->get_description()));
    for (const CLI::Option* option : options_in_force(commands, command)) {
      for (const std::string& name : names_of(*option))
        list.push_back(described(name, option->get_description()));
    }
    const Values values = positional_values(command);
    out += "    (\"" + command.path + "\") list=(" + absl::StrJoin(list, " ") + ")";
    if (!values.words.empty()) out += "; compadd -- " + absl::StrJoin(values.words, " ");
    if (values.ops) out += "; compadd -- ${(f)\"$(kiln ops --names 2>/dev/null)\"}";
    if (values.files) out += "; _files";
    out += ";;\n";
  }
  return out +
         "  esac\n"
         "  _describe -o kiln list\n"
         "}\n"
         "if [[ $funcstack[1] = _kiln ]]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n";
}

std::string fish_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string out =
      "# fish completion of kiln; made by: kiln completion fish\n"
      "function __kiln_at\n"
      "  set -l at kiln\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    if contains -- \"$at $word\" " +
      paths(commands, "'") +
      "\n"
      "      set at \"$at $word\"\n"
      "    end\n"
      "  end\n"
      "  test \"$at\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c kiln -f\n";
  for (const Command& command : commands) {
    const std::string head = "complete -c kiln -n " + quoted("__kiln_at " + quoted(command.path));
    for (const CLI::App* child : command.children)
      out += head + " -a " + child->get_name() + " -d " + quoted(child->get_description()) + "\n";
    const Values here = positional_values(command);
    if (!here.words.empty()) out += head + " -a " + quoted(absl::StrJoin(here.words, " ")) + "\n";
    if (here.ops) out += head + " -a '(kiln ops --names 2>/dev/null)'\n";
    if (here.files) out += head + " -F\n";
    for (const CLI::Option* option : options_in_force(commands, command)) {
      out += head;
      for (const std::string& name : option->get_lnames()) out += " -l " + name;
      for (const std::string& name : option->get_snames()) out += " -s " + name;
      if (takes_value(*option)) {
        const Values values = values_of(*option);
        out += values.files ? " -r -F" : " -x -a " + quoted(absl::StrJoin(values.words, " "));
      }
      out += " -d " + quoted(option->get_description()) + "\n";
    }
  }
  return out;
}

}  // namespace kiln::cli
