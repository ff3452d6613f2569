#include "cli/session.h"
#include "runtime/plugin_probe.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace kiln::cli {

// What `kiln doctor` starts for each plugin, so that one which crashes crashes this process only.
void add_probe_plugin(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("probe-plugin", "opens one plugin (used by doctor)");
  command->group("");  // not in --help
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "the plugin")->required();
  command->callback([&session, file] {
    session.command = [file]() -> absl::StatusOr<Exit> {
      return internal::answer_plugin_probe(*file) == 0 ? Exit::ok : Exit::cannot_do;
    };
  });
}

}  // namespace kiln::cli
