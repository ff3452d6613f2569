#include <kiln/runtime.h>

#include "base/file_system.h"
#include "cache/disk_tier.h"
#include "cache/garbage.h"
#include "cache/store.h"
#include "cli/cache_folder.h"
#include "cli/help.h"
#include "cli/rebuild.h"
#include "cli/session.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <unistd.h>
#include <vector>

namespace kiln::cli {
namespace {

struct Verified {
  std::size_t entries = 0, rebuilt = 0, other_compiler = 0;
  Json damaged = Json::array(), differs = Json::array();
};

// "1%", "100%" or a number of artifacts, out of `total`; at least one where any are wanted.
absl::StatusOr<std::size_t> sample_size(const std::string& text, std::size_t total) {
  const bool is_share = !text.empty() && text.back() == '%';
  double value = 0;
  if (!absl::SimpleAtod(is_share ? text.substr(0, text.size() - 1) : text, &value) ||
      !(value >= 0) || (is_share && value > 100)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--rebuild must be a share as 1%% or a number of artifacts: got \"%s\"", text));
  }
  const double count = is_share ? value / 100 * static_cast<double>(total) : value;
  return std::min(total, static_cast<std::size_t>(std::ceil(count)));
}

// Compiles it again and compares. An artifact of another compiler than the one here tells nothing.
absl::Status rebuild(Runtime& runtime, const cache::Artifact& artifact, Verified& out) {
  const CompileRequest request = request_of(artifact);
  KILN_ASSIGN_OR_RETURN(const Compiler* compiler, compiler_for(runtime, request.target));
  KILN_ASSIGN_OR_RETURN(const CompilerId id, compiler->id());
  const std::vector<cache::KeyField> here = {
      {"name", id.name}, {"build", id.build}, {"headers", id.headers}};
  if (here != artifact.compiler_fields) {
    ++out.other_compiler;
    return absl::OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const CompileResult result, compiler->compile(request));
  ++out.rebuilt;
  if (result.image == artifact.image && result.kind == artifact.kind) return absl::OkStatus();
  Json one;
  one["key"] = to_hex(artifact.key);
  one["source"] = request.source_name;
  one["want_bytes"] = result.image.size();
  one["have_bytes"] = artifact.image.size();
  out.differs.push_back(std::move(one));
  return absl::OkStatus();
}

absl::StatusOr<Verified> verify_all(Runtime& runtime, const std::string& share) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  const cache::CacheDir& dir = *folder;
  KILN_ASSIGN_OR_RETURN(const std::vector<cache::ArtifactFile> files, cache::list_artifacts(dir));
  KILN_ASSIGN_OR_RETURN(const std::size_t wanted, sample_size(share, files.size()));
  Verified out;
  std::size_t taken = 0;
  for (const cache::ArtifactFile& file : files) {
    if (file.path != dir.artifact_path(file.key)) continue;  // of another format version
    ++out.entries;
    FileInfo info;
    const absl::StatusOr<cache::LoadedFile> loaded = load_artifact(dir, file.key, &info);
    if (absl::IsNotFound(loaded.status())) continue;  // removed meanwhile
    if (!loaded.ok()) {
      Json one;
      one["key"] = to_hex(file.key);
      one["path"] = file.path;
      one["reason"] = reason_of(loaded.status());
      const bool is_damaged = absl::IsDataLoss(loaded.status());
      one["set_aside"] = is_damaged && set_artifact_aside(dir, file.key, info).ok();
      out.damaged.push_back(std::move(one));
      continue;
    }
    // Evenly over the keys, which are as good as random, and the same ones each time.
    if (taken * files.size() >= wanted * out.entries) continue;
    ++taken;
    KILN_RETURN_IF_ERROR(annotate(rebuild(runtime, loaded->artifact, out), to_hex(file.key)));
  }
  return out;
}

absl::StatusOr<Exit> verify(const Session& session, const std::string& share) {
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(Verified verified, verify_all(runtime, share));
  const bool fine = verified.damaged.empty() && verified.differs.empty();
  if (!session.json) {
    for (const Json& one : verified.damaged) {
      print("damaged: %s: %s\n", one["path"].get<std::string>(), one["reason"].get<std::string>());
    }
    for (const Json& one : verified.differs) {
      print("differs from what compiling it again makes: %s %s\n", one["key"].get<std::string>(),
            one["source"].get<std::string>());
    }
    print("%zu artifacts checked, %zu damaged; %zu compiled again, %zu differ\n", verified.entries,
          verified.damaged.size(), verified.rebuilt, verified.differs.size());
    if (verified.other_compiler > 0)
      print("%zu were made by another compiler\n", verified.other_compiler);
    return fine ? Exit::ok : Exit::cannot_do;
  }
  Json json;
  json["entries"] = verified.entries;
  json["damaged"] = std::move(verified.damaged);
  json["rebuilt"] = verified.rebuilt;
  json["other_compiler"] = verified.other_compiler;
  json["differs"] = std::move(verified.differs);
  print_json(json);
  return fine ? Exit::ok : Exit::cannot_do;
}

absl::StatusOr<Exit> collect(const Session& session, const std::string& limit) {
  cache::GarbageRules rules{.max_bytes = Runtime::instance().options().cache_max_bytes};
  if (!limit.empty()) {
    absl::StatusOr<std::int64_t> bytes = cache::parse_bytes(limit);
    if (!bytes.ok()) return annotate(bytes.status(), "--max-bytes");
    // Said by hand: recent use protects nothing.
    rules = {.max_bytes = std::max<std::int64_t>(*bytes, 1), .grace = absl::ZeroDuration()};
  }
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  const cache::CacheDir& dir = *folder;
  KILN_ASSIGN_OR_RETURN(const cache::GarbageReport report, collect_garbage(dir, rules));
  if (session.json) {
    Json json;
    json["entries"] = report.files;
    json["bytes"] = report.bytes;
    json["evicted"] = report.evicted;
    json["evicted_bytes"] = report.evicted_bytes;
    json["swept"] = report.swept;
    print_json(json);
  } else {
    print("%lld artifacts removed, %lld left in %lld bytes; %lld leftovers swept\n",
          static_cast<long long>(report.evicted), static_cast<long long>(report.files),
          static_cast<long long>(report.bytes), static_cast<long long>(report.swept));
  }
  return Exit::ok;
}

}  // namespace

absl::StatusOr<std::string> cache_folder() {
  const std::string dir = tools::store(Runtime::instance()).disk_dir();
  if (dir.empty()) {
    return absl::FailedPreconditionError(
        "cache: there must be a disk cache in force: got none; set KILN_CACHE_DIR to a folder that "
        "only you can write");
  }
  return dir;
}

absl::StatusOr<std::unique_ptr<cache::CacheDir>> open_cache_folder() {
  KILN_ASSIGN_OR_RETURN(const std::string path, cache_folder());
  return std::make_unique<cache::CacheDir>(
      real_file_system(), path,
      cache::FolderRules{.group_shared = Runtime::instance().options().cache_group_shared});
}

absl::Status check_cache_keeps() {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  KILN_RETURN_IF_ERROR(folder->state());
  if (::access(folder->path().c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("cache: %s must be writable, what is built is to be kept there: %s",
                      folder->path(), std::strerror(errno)));
}

absl::StatusOr<std::size_t> count_not_kept(const std::set<cache::CompileKey>& keys) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<cache::CacheDir> folder, open_cache_folder());
  return static_cast<std::size_t>(
      std::count_if(keys.begin(), keys.end(), [&](const cache::CompileKey& key) {
        return !folder->fs().stat(folder->artifact_path(key)).ok();
      }));
}

void add_cache_upkeep(CLI::App& cache, Session& session) {
  auto share = std::make_shared<std::string>("0");
  CLI::App* verify_command = cache.add_subcommand(
      "verify", "read every artifact and check it; damaged ones are set aside");
  verify_command
      ->add_option("--rebuild", *share,
                   "also compile a sample again and compare the bytes: 1%, or a number")
      ->type_name("SHARE");
  examples(*verify_command,
           {{"kiln cache verify", "read and check every artifact"},
            {"kiln cache verify --rebuild 10", "compile ten again and compare the bytes"}});
  verify_command->callback([&session, share] {
    session.command = [&session, share] { return verify(session, *share); };
  });
  auto limit = std::make_shared<std::string>();
  CLI::App* gc = cache.add_subcommand(
      "gc", "remove leftovers, and the least recently used artifacts beyond the limit");
  gc->add_option("--max-bytes", *limit, "the limit, as 2G; default KILN_CACHE_MAX_BYTES")
      ->type_name("BYTES");
  examples(*gc, {{"kiln cache gc --max-bytes 2G", "keep the two GiB that were used last"}});
  gc->callback([&session, limit] {
    session.command = [&session, limit] { return collect(session, *limit); };
  });
}

}  // namespace kiln::cli
