#include "cli/help.h"

#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace kiln::cli {
namespace {

// Text as troff wants it: backslashes, and dots and quotes that begin a line.
std::string troff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_start = c == '\n';
  }
  return out;
}

std::string troff_section(const Command& command) {
  std::string out = ".SS " + troff(command.path + usage_of(command)) + "\n";
  out += troff(command.app->get_description()) + "\n";
  for (const CLI::Option* option : command.options) {
    out += ".TP\n.B " + troff(words_of(*option)) + "\n" + troff(option->get_description()) + "\n";
  }
  if (!command.app->get_footer().empty())
    out += ".PP\n.nf\n" + troff(command.app->get_footer()) + "\n.fi\n";
  return out;
}

}  // namespace

void examples(CLI::App& command, std::initializer_list<Example> list) {
  std::string text = "Examples:";
  for (const Example& example : list) text += "\n  " + example.command + "\n      " + example.means;
  command.footer(text);
}

std::string manual_page(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string out = ".TH KILN 1\n.SH NAME\nkiln \\- builds GPU kernels on first call\n";
  out += ".SH SYNOPSIS\n.B kiln\n.I COMMAND\n[options]\n.SH DESCRIPTION\n";
  out += troff(app.get_description()) + "\n.SH COMMANDS\n";
  for (const Command& command : commands) {
    if (command.children.empty()) out += troff_section(command);
  }
  out += ".SH OPTIONS OF EVERY COMMAND\n";
  for (const CLI::Option* option : commands.front().options)
    out += ".TP\n.B " + troff(words_of(*option)) + "\n" + troff(option->get_description()) + "\n";
  out += ".SH CALLS AND EXIT STATUS\n.nf\n" + troff(app.get_footer()) + "\n.fi\n";
  out += ".SH ENVIRONMENT\n";
  for (const Variable& variable : environment())
    out += absl::StrFormat(".TP\n.B %s\n%s\n", troff(variable.name), troff(variable.means));
  return out;
}

std::vector<Variable> environment() {
  return {
      {"KILN_CACHE_DIR", "the disk cache; else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln"},
      {"KILN_CACHE_MAX_BYTES", "its limit, as 4G; 0: none"},
      {"KILN_CACHE_LAYERS", "read-only folders and packs, parted by ':'"},
      {"KILN_CACHE_REMOTE",
       "a store that machines share: redis(s)://..., http(s)://..., s3+http(s)://..."},
      {"KILN_CACHE_REMOTE_USER", "who asks it; KILN_CACHE_REMOTE_PASSWORD goes with it"},
      {"KILN_CACHE_REMOTE_PASSWORD", "of KILN_CACHE_REMOTE_USER"},
      {"KILN_CACHE_REMOTE_TOKEN", "an HTTP bearer token, instead of user and password"},
      {"AWS_ACCESS_KEY_ID", "signs requests to s3+http(s)://"},
      {"AWS_SECRET_ACCESS_KEY", "of AWS_ACCESS_KEY_ID; AWS_SESSION_TOKEN may go with it"},
      {"AWS_SESSION_TOKEN", "of AWS_ACCESS_KEY_ID, where that ends"},
      {"AWS_REGION", "that is signed for; else AWS_DEFAULT_REGION, else us-east-1"},
      {"AWS_DEFAULT_REGION", "where there is no AWS_REGION"},
      {"KILN_CACHE_REMOTE_CA", "certificates that TLS trusts, PEM"},
      {"KILN_CACHE_REMOTE_TIMEOUT", "seconds that a request may take"},
      {"KILN_CACHE_REMOTE_MAX_BYTES", "larger values are neither read nor written"},
      {"KILN_CACHE_REMOTE_WRITE", "0: the store is only read"},
      {"KILN_CACHE_SHARED", "group: the folder's group is trusted"},
      {"KILN_CACHE_WRITE_BEHIND", "0: a build waits until it is on the disk"},
      {"KILN_TRUSTED_KEYS", "public keys, parted by ','; then a pack must be signed by one"},
      {"KILN_SIGNING_KEY", "the file of the key that signs exported packs"},
      {"KILN_TUNED", "off: stored winners of tuning sweeps are left out"},
      {"KILN_STRICT", "1: trouble with cache files is an error"},
      {"KILN_COMPILE", "block, async or forbid: what a call does whose kernel is not built"},
      {"KILN_COMPILE_DEADLINE", "seconds that a call waits for a build; 0: as long as it takes"},
      {"KILN_COMPILE_LIMIT", "seconds that one compilation may take"},
      {"KILN_COMPILE_MEMORY", "bytes that one compile worker may hold"},
      {"KILN_MAX_ENTRIES", "built entries that one interface of an op keeps; 0: no limit"},
      {"KILN_COMPILE_WORKER", "the file of the compile worker"},
      {"KILN_COMPILER_MATCH", "any: what another compiler made is preferred to compiling"},
      {"KILN_JOBS", "compile workers at most; 0: compile in the process"},
      {"KILN_NVRTC", "the libnvrtc to open"},
      {"CUDA_HOME", "the CUDA Toolkit; CUDA_PATH is looked at next"},
      {"KILN_CXX", "the host compiler of the CPU backend"},
      {"KILN_KERNEL_PATH", "kernel sources are read from this folder"},
      {"KILN_BACKEND_PATH", "plugins, and folders of them, parted by ':'"},
      {"KILN_DISABLE_BACKENDS", "plugins to leave out, parted by ','"},
      {"KILN_SELECT", "only=KEYS;exclude=KEYS;prefer=KEYS: settles a clash of implementations"},
      {"KILN_RECORD_CALLS", "each distinct call of a process is appended to this file"},
      {"KILN_TRACE", "spans for Perfetto are appended to this file"},
      {"KILN_LOG", "select: each selection is explained in one line"},
      {"KILN_LOG_LEVEL", "debug, info, warning, error or off: the least that is told"},
      {"NO_COLOR", "nothing is coloured"},
  };
}

}  // namespace kiln::cli
