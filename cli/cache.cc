#include <kiln/runtime.h>

#include "cache/artifact.h"
#include "cache/store.h"
#include "cli/cache_folder.h"
#include "cli/help.h"
#include "cli/session.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

// Looks after the disk cache. Files are found by their layout (docs/cache_format.md) and read as
// the store reads them.
namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

struct CacheFile {
  std::string path;
  std::string key;  // by its name
  std::int64_t bytes = 0;
};

std::vector<CacheFile> files_below(const std::string& folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code file_error;
    if (!it->is_regular_file(file_error) || it->path().extension() != ".kiln") continue;
    const auto bytes = static_cast<std::int64_t>(it->file_size(file_error));
    if (!file_error) files.push_back({it->path().string(), it->path().stem().string(), bytes});
  }
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.key < b.key; });
  return files;
}

absl::StatusOr<cache::Artifact> read_artifact(const CacheFile& file) {
  KILN_ASSIGN_OR_RETURN(const std::string bytes, read_input(file.path));
  KILN_ASSIGN_OR_RETURN(cache::Artifact artifact, cache::parse_artifact(bytes));
  if (to_hex(artifact.key) != file.key) {
    return absl::DataLossError(absl::StrFormat("key must be the one of its name: want %s, got %s",
                                               file.key, to_hex(artifact.key)));
  }
  return artifact;
}

std::string field(const std::vector<cache::KeyField>& fields, std::string_view name) {
  for (const cache::KeyField& one : fields) {
    if (one.name == name) return one.value;
  }
  return "";
}

Json layers_json(const cache::Store& store) {
  Json layers = Json::array();
  for (const cache::LayerInfo& layer : store.layers()) {
    Json one;
    one["path"] = layer.path;
    one["kind"] = layer.is_pack ? "pack" : "folder";
    one["signed"] = layer.is_signed;
    one["artifacts"] = layer.artifacts >= 0 ? Json(layer.artifacts) : Json();
    one["hits"] = layer.hits;
    one["skipped"] = layer.reason.empty() ? Json() : Json(layer.reason);
    layers.push_back(std::move(one));
  }
  return layers;
}

Json remote_json(const std::optional<cache::RemoteInfo>& remote) {
  if (!remote) return {};
  const cache::RemoteStats& counted = remote->stats;
  Json json;
  json["address"] = remote->address;
  json["skipped"] = remote->reason.empty() ? Json() : Json(remote->reason);
  json["left_alone"] = remote->is_left_alone;
  for (const auto& [name, count] :
       {std::pair("hits", counted.hits), std::pair("misses", counted.misses),
        std::pair("stored", counted.stored), std::pair("errors", counted.errors),
        std::pair("damaged", counted.damaged), std::pair("not_asked", counted.skipped),
        std::pair("opened", counted.opened), std::pair("dropped", counted.dropped),
        std::pair("lease_waits", counted.lease_waits)})
    json[name] = count;
  return json;
}

absl::StatusOr<Exit> stats(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::string dir, cache_folder());
  const std::vector<CacheFile> files = files_below(dir + "/v1");
  std::int64_t bytes = 0;
  for (const CacheFile& file : files) bytes += file.bytes;
  const cache::Store& store = tools::store(Runtime::instance());
  const cache::StoreStats counted = store.stats();
  const auto set_aside = static_cast<std::int64_t>(files_below(dir + "/quarantine").size());
  if (session.json) {
    Json json;
    json["dir"] = dir;
    json["entries"] = files.size();
    json["bytes"] = bytes;
    json["hits"] =
        counted.memory_hits + counted.disk_hits + counted.layer_hits + counted.remote_hits;
    json["misses"] = counted.misses;
    json["quarantined"] = set_aside;
    json["evicted"] = counted.evicted;
    json["errors"] = counted.errors;
    json["layers"] = layers_json(store);
    json["remote"] = remote_json(store.remote());
    print_json(json);
    return Exit::ok;
  }
  print("%s\n%zu artifacts, %lld bytes; %lld set aside as damaged\n", dir, files.size(),
        static_cast<long long>(bytes), static_cast<long long>(set_aside));
  for (const cache::LayerInfo& layer : store.layers()) {
    print("layer %s: %s\n", layer.path,
          layer.reason.empty() ? "used" : ("skipped: " + layer.reason));
  }
  if (const std::optional<cache::RemoteInfo> remote = store.remote()) {
    print("remote %s\n", remote->reason.empty() ? remote->address : ("skipped: " + remote->reason));
  }
  return Exit::ok;
}

absl::StatusOr<Exit> list(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::string dir, cache_folder());
  Json json;
  json["entries"] = Json::array();
  for (const CacheFile& file : files_below(dir + "/v1")) {
    const absl::StatusOr<cache::Artifact> artifact = read_artifact(file);
    const std::string source =
        artifact.ok() ? field(artifact->source_fields, "source_name") : "damaged";
    const std::string target = artifact.ok() ? field(artifact->source_fields, "target") : "";
    if (!session.json) {
      print("%s %9lld %-8s %s\n", file.key, static_cast<long long>(file.bytes), target, source);
      continue;
    }
    Json one;
    one["key"] = file.key;
    one["bytes"] = file.bytes;
    one["kind"] = artifact.ok() ? Json(artifact->kind) : Json();
    one["source"] = artifact.ok() ? Json(source) : Json();
    one["target"] = artifact.ok() ? Json(target) : Json();
    json["entries"].push_back(std::move(one));
  }
  if (session.json) print_json(json);
  return Exit::ok;
}

Json fields_json(const std::vector<cache::KeyField>& fields, bool with_text) {
  Json list_of_fields = Json::array();
  for (const cache::KeyField& one : fields) {
    const bool is_text = one.name == "source" || one.name.starts_with("header ");
    Json json;
    json["name"] = one.name;
    json["value"] = is_text && !with_text ? absl::StrFormat("(%d bytes, xxh3 %s)", one.value.size(),
                                                            to_hex(hash128(one.value)))
                                          : one.value.str();
    list_of_fields.push_back(std::move(json));
  }
  return list_of_fields;
}

absl::StatusOr<Exit> show(const Session& session, const std::string& prefix, bool with_text) {
  KILN_ASSIGN_OR_RETURN(const std::string dir, cache_folder());
  std::vector<CacheFile> found;
  for (CacheFile& file : files_below(dir + "/v1")) {
    if (file.key.starts_with(prefix)) found.push_back(std::move(file));
  }
  if (prefix.empty() || found.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("key: must be the start of one artifact's key: got \"%s\", which %d have",
                        prefix, found.size()));
  }
  absl::StatusOr<cache::Artifact> artifact = read_artifact(found.front());
  if (!artifact.ok()) return annotate(artifact.status(), found.front().path);
  Json json;
  json["key"] = found.front().key;
  json["path"] = found.front().path;
  json["kind"] = artifact->kind;
  json["image_bytes"] = artifact->image.size();
  const Json metadata = Json::parse(artifact->metadata, nullptr, /*allow_exceptions=*/false);
  json["metadata"] = metadata.is_discarded() ? Json(artifact->metadata) : metadata;
  json["source_fields"] = fields_json(artifact->source_fields, with_text);
  json["compiler_fields"] = fields_json(artifact->compiler_fields, with_text);
  if (session.json) {
    print_json(json);
    return Exit::ok;
  }
  print("%s\n  file   %s\n  image  %s of %zu bytes\n", found.front().key, found.front().path,
        artifact->kind, artifact->image.size());
  for (const char* group : {"source_fields", "compiler_fields"}) {
    for (const Json& one : json[group]) {
      print("  %-10s %s\n", one["name"].get<std::string>(), one["value"].get<std::string>());
    }
  }
  return Exit::ok;
}

absl::StatusOr<Exit> clear(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::string dir, cache_folder());
  std::vector<CacheFile> files = files_below(dir + "/v1");
  for (CacheFile& file : files_below(dir + "/quarantine")) files.push_back(std::move(file));
  std::int64_t bytes = 0;
  std::size_t removed = 0;
  std::string first_trouble;
  for (const CacheFile& file : files) {
    std::error_code error;
    if (fs::remove(file.path, error)) {
      ++removed;
      bytes += file.bytes;
    } else if (error && first_trouble.empty()) {
      first_trouble = file.path + ": " + error.message();
    }
  }
  if (!first_trouble.empty()) {
    return absl::FailedPreconditionError("cache: every file must be removable: got " +
                                         first_trouble);
  }
  if (session.json) {
    Json json;
    json["removed"] = removed;
    json["bytes"] = bytes;
    print_json(json);
  } else {
    print("%zu files removed, %lld bytes\n", removed, static_cast<long long>(bytes));
  }
  return Exit::ok;
}

}  // namespace

void add_cache(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("cache", "look after the cache");
  command->require_subcommand(1);
  examples(*command, {{"kiln cache stats", "how much is in it"},
                      {"kiln cache verify --rebuild 1%", "read all, compile a sample again"},
                      {"kiln cache export kernels.kpack", "one file for an image or a fleet"}});
  const auto add = [&](const char* name, const char* help, Example example, auto run) {
    CLI::App* child = command->add_subcommand(name, help);
    examples(*child, {std::move(example)});
    child->callback(
        [&session, run] { session.command = [&session, run] { return run(session); }; });
  };
  add("stats", "how much is in it", {"kiln cache stats --json", "for scripts"},
      [](const Session& s) { return stats(s); });
  add("list", "its artifacts", {"kiln cache list", "key, bytes, target and source of each"},
      [](const Session& s) { return list(s); });
  add("clear", "remove all artifacts", {"kiln cache clear", "the folder of KILN_CACHE_DIR"},
      [](const Session& s) { return clear(s); });
  add_cache_upkeep(*command, session);
  add_cache_packs(*command, session);
  auto prefix = std::make_shared<std::string>();
  auto with_text = std::make_shared<bool>(false);
  CLI::App* show_command = command->add_subcommand("show", "one artifact: what it was made of");
  show_command->add_option("KEY", *prefix, "its key, or the start of it")->required();
  show_command->add_flag("--text", *with_text, "sources and headers in full");
  examples(*show_command,
           {{"kiln cache show 1f0c --text", "by the start of its key, with its sources"}});
  show_command->callback([&session, prefix, with_text] {
    session.command = [&session, prefix, with_text] { return show(session, *prefix, *with_text); };
  });
}

}  // namespace kiln::cli
