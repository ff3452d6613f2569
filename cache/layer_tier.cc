#include "cache/layer_tier.h"

#include <kiln/status.h>

#include "base/log.h"
#include "cache/cache_dir.h"
#include "cache/disk_tier.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

constexpr std::int64_t kMaxManifestBytes = 64 << 20;

// One layer: a folder in the form of a cache folder, or a pack.
struct Layer {
  std::unique_ptr<std::atomic<std::int64_t>> hits = std::make_unique<std::atomic<std::int64_t>>(0);
  std::string path;
  absl::Status state;  // why it is skipped
  std::unique_ptr<CacheDir> folder;
  std::vector<CompileKey> named;  // by the folder's manifest
  std::unique_ptr<Pack> pack;
};

std::vector<CompileKey> read_manifest(const CacheDir& dir) {
  std::vector<CompileKey> out;
  const std::string path = dir.path() + "/manifest";
  const absl::StatusOr<Fd> fd = dir.fs().open_read(path);
  if (!fd.ok()) return out;
  FileInfo info;
  const absl::StatusOr<std::string> text = dir.read_file(*fd, path, kMaxManifestBytes, info);
  if (!text.ok()) return out;
  for (const auto& line : absl::StrSplit(*text, '\n')) {
    if (const auto key = parse_compile_key({line.data(), line.size()})) out.push_back(*key);
  }
  return out;
}

absl::Status open_layer(FileSystem& fs, const TrustedKeys& trusted, Layer& layer) {
  KILN_ASSIGN_OR_RETURN(layer.path, absolute_path(layer.path));
  KILN_ASSIGN_OR_RETURN(const FileInfo info, fs.stat(layer.path));
  if (info.type == FileType::directory) {
    layer.folder = std::make_unique<CacheDir>(fs, layer.path, FolderRules{.create = false});
    KILN_RETURN_IF_ERROR(layer.folder->state());
    layer.named = read_manifest(*layer.folder);
    return absl::OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(layer.pack, open_pack_file(fs, layer.path, trusted));
  return absl::OkStatus();
}

class RealLayerTier final : public LayerTier {
 public:
  RealLayerTier(FileSystem& fs, const std::vector<std::string>& paths, const TrustedKeys& trusted) {
    for (const std::string& path : paths) {
      Layer layer;
      layer.path = path;
      layer.state = open_layer(fs, trusted, layer);
      if (!layer.state.ok()) {
        ++counters_.errors;
        log_once(
            LogLevel::warning, "cache/layer/" + layer.path,
            absl::StrFormat("cache layer %s is skipped: %s", layer.path, message_of(layer.state)));
      }
      layers_.push_back(std::move(layer));
    }
  }

  TierKind kind() const override { return TierKind::layer; }
  const TierCounters& counters() const override { return counters_; }

  std::vector<LayerInfo> layers() const override {
    std::vector<LayerInfo> out;
    for (const Layer& layer : layers_) {
      LayerInfo info{.path = layer.path,
                     .is_pack = layer.pack != nullptr,
                     .hits = layer.hits->load(),
                     .reason = message_of(layer.state)};
      if (layer.pack != nullptr) {
        info.artifacts = static_cast<std::int64_t>(layer.pack->size());
        info.is_signed = layer.pack->is_signed();
      }
      out.push_back(std::move(info));
    }
    return out;
  }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    return first([&](const Layer& layer) { return find_in(layer, wanted); });
  }

  absl::StatusOr<Shared> find_by_source(const Artifact& wanted, bool named_only) override {
    return first([&](const Layer& layer) -> absl::StatusOr<Shared> {
      if (layer.pack != nullptr) return layer.pack->find_by_source(wanted);
      if (layer.named.empty() && named_only) return Shared();
      return find_newest(*layer.folder, wanted,
                         named_only ? layer.named : std::vector<CompileKey>());
    });
  }

  bool may_have_source(const Artifact& wanted) override {
    return std::any_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
      if (!layer.state.ok()) return false;
      return layer.pack != nullptr ? layer.pack->has_source(wanted.key.source)
                                   : cache::may_have_source(*layer.folder, wanted);
    });
  }

  absl::Status put(const Shared&) override { return absl::OkStatus(); }

 private:
  static absl::StatusOr<Shared> find_in(const Layer& layer, const Artifact& wanted) {
    if (layer.pack != nullptr) return layer.pack->find(wanted);
    absl::StatusOr<LoadedFile> loaded = load_artifact(*layer.folder, wanted.key);
    if (absl::IsNotFound(loaded.status())) return Shared();
    KILN_RETURN_IF_ERROR(loaded.status());
    if (!same_request(loaded->artifact, wanted)) return Shared();
    return with_fields_of(wanted, std::move(loaded->artifact));
  }

  // The first answer of a layer, in their order. One that is damaged or refused is passed over, and
  // said so once.
  template <typename Ask>
  absl::StatusOr<Shared> first(Ask ask) {
    for (const Layer& layer : layers_) {
      if (!layer.state.ok()) continue;
      absl::StatusOr<Shared> found = ask(layer);
      if (!found.ok()) {
        ++counters_.errors;
        log_once(LogLevel::warning, "cache/layer/" + layer.path,
                 absl::StrFormat("cache layer %s: an artifact is passed over: %s", layer.path,
                                 message_of(found.status())));
        continue;
      }
      if (*found == nullptr || !may_run(layer, **found)) continue;
      ++*layer.hits;
      return found;
    }
    return Shared();
  }

  // A host object is code of this very process.
  static bool may_run(const Layer& layer, const Artifact& artifact) {
    if (artifact.kind != kHostObject || layer.pack == nullptr || layer.pack->is_signed())
      return true;
    log_once(LogLevel::warning, "cache/layer/host/" + layer.path,
             absl::StrFormat("cache layer %s: its host objects are not used: the pack must be "
                             "signed by a trusted key",
                             layer.path));
    return false;
  }

  std::vector<Layer> layers_;  // fixed after construction
  TierCounters counters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pack>> open_pack_file(FileSystem& fs, const std::string& path,
                                                     const TrustedKeys& trusted) {
  KILN_ASSIGN_OR_RETURN(const std::string full, absolute_path(path));
  KILN_ASSIGN_OR_RETURN(const Fd fd, fs.open_read(full));
  // Of the open file, so that the folder does not matter: what it holds only this user or root can
  // have written.
  KILN_ASSIGN_OR_RETURN(const FileInfo info, fs.stat(fd));
  KILN_RETURN_IF_ERROR(check_trusted(info, FileType::regular, full));
  KILN_ASSIGN_OR_RETURN(Mapping mapping, fs.map(fd, static_cast<std::size_t>(info.size)));
  return Pack::open(std::move(mapping), trusted);
}

std::unique_ptr<LayerTier> make_layer_tier(FileSystem& fs, const std::vector<std::string>& paths,
                                           const TrustedKeys& trusted) {
  return std::make_unique<RealLayerTier>(fs, paths, trusted);
}

}  // namespace kiln::cache
