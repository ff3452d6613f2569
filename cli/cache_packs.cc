#include <kiln/runtime.h>

#include "base/file_system.h"
#include "cache/disk_tier.h"
#include "cache/garbage.h"
#include "cache/layer_tier.h"
#include "cache/pack.h"
#include "cache/remote_records.h"
#include "cache/tuning_files.h"
#include "cli/cache_folder.h"
#include "cli/call_arguments.h"
#include "cli/help.h"
#include "cli/needed_artifacts.h"
#include "cli/output_file.h"
#include "cli/session.h"
#include "cli/tune.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <vector>

namespace kiln::cli {
namespace {

struct PackArguments {
  std::string path;
  std::string key_file;
  CallSource calls;  // no file: all that is in the folder
  DeviceArguments devices;
};

constexpr std::int64_t kMostKeyFile = 4096;  // bytes

// The key of --sign-key, else of KILN_SIGNING_KEY: both name a file.
absl::StatusOr<std::optional<cache::SigningKey>> signing_key(const std::string& option) {
  const char* variable = std::getenv("KILN_SIGNING_KEY");
  const std::string path = !option.empty() ? option : variable != nullptr ? variable : "";
  if (path.empty()) return std::optional<cache::SigningKey>();
  KILN_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMostKeyFile));
  absl::StatusOr<cache::SigningKey> key = cache::parse_signing_key(text);
  if (!key.ok()) return annotate(key.status(), path);
  return std::optional<cache::SigningKey>(*key);
}

// All that can be read in the folder; what cannot be is counted.
absl::StatusOr<cache::PackContents> whole_folder(std::int64_t& skipped) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  const cache::CacheDir& dir = *folder;
  KILN_ASSIGN_OR_RETURN(const std::vector<cache::ArtifactFile> files, cache::list_artifacts(dir));
  cache::PackContents contents;
  for (const cache::ArtifactFile& file : files) {
    absl::StatusOr<cache::LoadedFile> loaded = load_artifact(dir, file.key);
    if (!loaded.ok()) {
      tell("left out: %s: %s\n", file.path, reason_of(loaded.status()));
      ++skipped;
      continue;
    }
    contents.artifacts.push_back(
        std::make_shared<const cache::Artifact>(std::move(loaded->artifact)));
  }
  return contents;
}

absl::StatusOr<Exit> export_pack(const Session& session, const PackArguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const std::optional<cache::SigningKey> key,
                        signing_key(arguments.key_file));
  if (const auto there = real_file_system().stat(arguments.path);
      there.ok() && there->type != FileType::regular) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PACK must be the name of a file to write: got %s, %s",
        there->type == FileType::directory ? "a folder" : "no regular file", arguments.path));
  }
  cache::PackContents contents;
  std::int64_t skipped = 0;
  if (arguments.calls.file.empty()) {
    KILN_ASSIGN_OR_RETURN(contents, whole_folder(skipped));
  } else {
    Runtime& runtime = Runtime::instance();
    KILN_ASSIGN_OR_RETURN(contents.artifacts,
                          needed_artifacts(runtime, arguments.calls, arguments.devices));
  }
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  const cache::TuningFiles records({.dir = folder->path(), .strict = true});
  KILN_ASSIGN_OR_RETURN(contents.tuning, records.list());
  const std::size_t count = contents.artifacts.size(), record_count = contents.tuning.size();
  KILN_ASSIGN_OR_RETURN(const std::string bytes,
                        make_pack(std::move(contents), key ? &*key : nullptr));
  KILN_RETURN_IF_ERROR(exchange_file(arguments.path, bytes, 0644));
  if (session.json) {
    Json json;
    json["path"] = arguments.path;
    json["entries"] = count;
    json["records"] = record_count;
    json["skipped"] = skipped;
    json["bytes"] = bytes.size();
    json["signed_by"] = key ? Json(to_hex(public_key(*key))) : Json();
    print_json(json);
  } else {
    print("%s: %zu artifacts, %zu tuning records, %zu bytes%s\n", arguments.path, count,
          record_count, bytes.size(), key ? (", signed by " + to_hex(public_key(*key))) : "");
  }
  return skipped == 0 ? Exit::ok : Exit::cannot_do;
}

// Of a record that is here already the better measured stays.
absl::StatusOr<std::size_t> import_records(const cache::Pack& pack) {
  KILN_ASSIGN_OR_RETURN(const std::string folder, cache_folder());
  const cache::TuningFiles files(
      {.dir = folder,
       .strict = true,
       .remote = cache::remote_records_of(tools::store(Runtime::instance()))});
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pack.tuning_size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const auto named, pack.tuning(i));
    const absl::StatusOr<internal::TuneRecord> record = internal::parse_record(named.second);
    if (!record.ok()) {
      tell("left out: tuning record %s: %s\n", named.first, reason_of(record.status()));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(const bool taken, merge_record(files, *record));
    if (taken) ++kept;
  }
  return kept;
}

// An artifact of a pack goes into the folder only if everything of it is right; code for this very
// process only from a signed one.
absl::StatusOr<Exit> import_pack(const Session& session, const PackArguments& arguments) {
  Runtime& runtime = Runtime::instance();
  KILN_RETURN_IF_ERROR(must_be_there("PACK", arguments.path));
  KILN_RETURN_IF_ERROR(cache_folder().status());
  KILN_ASSIGN_OR_RETURN(
      const std::unique_ptr<cache::Pack> pack,
      cache::open_pack_file(real_file_system(), arguments.path,
                            cache::parse_trusted_keys(runtime.options().trusted_keys)));
  std::int64_t refused = 0;
  const auto written = [&]() -> absl::Status {
    if (tools::store(runtime).flush(absl::Minutes(10))) return absl::OkStatus();
    return absl::UnavailableError(
        "cache: what was imported must be written, got no end of it in time");
  };
  for (std::size_t i = 0; i < pack->size(); ++i) {
    // A remote cache gives up what finds no room among the writes that wait.
    if (i % 64 == 63) KILN_RETURN_IF_ERROR(written());
    absl::StatusOr<cache::Artifact> artifact = pack->artifact(i);
    if (!artifact.ok()) return annotate(artifact.status(), arguments.path);
    if (artifact->kind == "host_object" && !pack->is_signed()) {
      ++refused;
      continue;
    }
    KILN_RETURN_IF_ERROR(
        tools::store(runtime).put(std::make_shared<const cache::Artifact>(*std::move(artifact))));
  }
  KILN_ASSIGN_OR_RETURN(const std::size_t records, import_records(*pack));
  KILN_RETURN_IF_ERROR(written());
  if (session.json) {
    Json json;
    json["entries"] = static_cast<std::int64_t>(pack->size()) - refused;
    json["records"] = records;
    json["refused"] = refused;
    json["signed"] = pack->is_signed();
    print_json(json);
  } else {
    print("%lld artifacts and %zu tuning records imported\n",
          static_cast<long long>(pack->size()) - static_cast<long long>(refused), records);
    if (refused > 0) {
      print("%lld host objects refused: the pack must be signed by a key of KILN_TRUSTED_KEYS\n",
            static_cast<long long>(refused));
    }
  }
  return Exit::ok;
}

absl::StatusOr<Exit> make_key(const Session& session, const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const cache::SigningKey key, cache::new_signing_key());
  FileSystem& files = real_file_system();
  // Never over an old one: what it signed could not be signed again.
  KILN_ASSIGN_OR_RETURN(const Fd fd, files.create(path));
  KILN_RETURN_IF_ERROR(write_all(files, fd, to_hex(key) + "\n"));
  KILN_RETURN_IF_ERROR(files.sync(fd));
  const std::string trusted = to_hex(public_key(key));
  if (session.json) {
    Json json;
    json["path"] = path;
    json["public_key"] = trusted;
    print_json(json);
  } else {
    print("%s holds the signing key: keep it secret.\nKILN_TRUSTED_KEYS=%s\n", path, trusted);
  }
  return Exit::ok;
}

}  // namespace

void add_cache_packs(CLI::App& cache, Session& session) {
  auto arguments = std::make_shared<PackArguments>();
  CLI::App* export_command =
      cache.add_subcommand("export", "write artifacts into one file, a pack");
  export_command->add_option("PACK", arguments->path, "the file to write")->required();
  export_command
      ->add_option("--sign-key", arguments->key_file,
                   "a file made by keygen; default KILN_SIGNING_KEY")
      ->type_name("FILE");
  CLI::Option* const calls = add_call_file_options(*export_command, arguments->calls);
  calls->description("only what the calls of this file need; - is stdin");
  add_device_options(*export_command, arguments->devices);
  for (const char* name : {"--board", "--arch", "--device"})
    export_command->get_option(name)->needs(calls);
  examples(*export_command, {{"kiln cache export kernels.kpack", "all that is in the cache folder"},
                             {"kiln cache export kernels.kpack --sign-key release.key", "signed"},
                             {"kiln cache export kernels.kpack --calls calls.jsonl --board h200",
                              "what these calls need, no more"}});
  export_command->callback([&session, arguments] {
    session.command = [&session, arguments] { return export_pack(session, *arguments); };
  });
  CLI::App* import_command =
      cache.add_subcommand("import", "put a pack's artifacts into the cache folder");
  import_command->add_option("PACK", arguments->path, "the file to read")->required();
  examples(*import_command, {{"kiln cache import kernels.kpack", "into the cache folder"}});
  import_command->callback([&session, arguments] {
    session.command = [&session, arguments] { return import_pack(session, *arguments); };
  });
  auto path = std::make_shared<std::string>();
  CLI::App* keygen =
      cache.add_subcommand("keygen", "make a key that signs packs, and print its public half");
  keygen->add_option("FILE", *path, "where to write the signing key")->required();
  examples(*keygen, {{"kiln cache keygen release.key",
                      "keep the file secret, set KILN_TRUSTED_KEYS to what is printed"}});
  keygen->callback([&session, path] {
    session.command = [&session, path] { return make_key(session, *path); };
  });
}

}  // namespace kiln::cli
