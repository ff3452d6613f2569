#include "cache/store.h"

#include <kiln/status.h>

#include "base/file_system.h"
#include "cache/cache_dir.h"
#include "cache/disk_tier.h"
#include "cache/layer_tier.h"
#include "cache/lease.h"
#include "cache/memory_tier.h"
#include "cache/tier.h"
#include "cache/write_behind.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

// The variable's value if it is set and not empty.
std::optional<std::string> from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

class TieredStore final : public Store {
 public:
  TieredStore(const StoreOptions& options, FileSystem& fs) {
    tiers_.push_back(make_memory_tier(options.max_memory_bytes));
    if (!options.disk_dir.empty()) add_disk(options, fs);
    if (options.layers.empty()) return;
    std::unique_ptr<LayerTier> layers = make_layer_tier(fs, options.layers, options.trusted_keys);
    layer_tier_ = layers.get();
    tiers_.push_back(std::move(layers));
  }

  absl::StatusOr<std::optional<Found>> find(const Artifact& wanted) override {
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact, tiers_[i]->find(wanted));
      if (artifact == nullptr) continue;
      return found_in(i, std::move(artifact));
    }
    ++misses_;
    return std::nullopt;
  }

  absl::StatusOr<std::optional<Found>> find_by_source(const Artifact& wanted) override {
    for (const bool named_only : {true, false}) {
      for (std::size_t i = 0; i < tiers_.size(); ++i) {
        KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                              tiers_[i]->find_by_source(wanted, named_only));
        if (artifact != nullptr) return found_in(i, std::move(artifact));
      }
    }
    return std::nullopt;
  }

  bool flush(absl::Duration wait) override { return writer_ == nullptr || writer_->flush(wait); }

  absl::Status put(std::shared_ptr<const Artifact> artifact) override {
    if (artifact == nullptr)
      return absl::InvalidArgumentError("cache: put must get an artifact, got null");
    absl::Status first;
    // All tiers are tried: a strict store reports the disk's error, and the process still has its
    // artifact.
    for (const auto& tier : tiers_) first.Update(tier->put(artifact));
    if (first.ok()) ++stored_;
    return first;
  }

  absl::StatusOr<Lease> lease(const CompileKey& key, absl::Time deadline) override {
    if (leases_ == nullptr) return Lease();
    return leases_->acquire(key, deadline);
  }

  StoreStats stats() const override {
    StoreStats out;
    out.memory_hits = hits_[static_cast<std::size_t>(TierKind::memory)];
    out.disk_hits = hits_[static_cast<std::size_t>(TierKind::disk)];
    out.layer_hits = hits_[static_cast<std::size_t>(TierKind::layer)];
    out.remote_hits = hits_[static_cast<std::size_t>(TierKind::remote)];
    out.misses = misses_;
    out.stored = stored_;
    for (const auto& tier : tiers_) {
      const TierCounters& counters = tier->counters();
      out.quarantined += counters.quarantined;
      out.evicted += counters.evicted;
      out.errors += counters.errors;
      out.bytes_read += counters.bytes_read;
      out.bytes_written += counters.bytes_written;
    }
    if (dir_ != nullptr) out.errors += dir_->errors();
    if (leases_ != nullptr) out.lease_waits = leases_->waits();
    return out;
  }

  const std::string& disk_dir() const override { return disk_dir_; }
  std::vector<LayerInfo> layers() const override {
    return layer_tier_ == nullptr ? std::vector<LayerInfo>() : layer_tier_->layers();
  }

 private:
  void add_disk(const StoreOptions& options, FileSystem& fs) {
    dir_ = std::make_shared<const CacheDir>(
        fs, options.disk_dir,
        FolderRules{.strict = options.strict, .group_shared = options.group_shared});
    // A folder that cannot be used was warned of once. Only a strict store keeps asking it, to fail
    // each time.
    if (!dir_->state().ok() && !options.strict) return;
    std::unique_ptr<Tier> disk = make_disk_tier(dir_, options.max_disk_bytes);
    leases_ = std::make_shared<LeaseFiles>(dir_, options.lease_wait, options.heartbeat);
    if (options.write_behind && !options.strict) {
      writer_ = WriteBehind::make(std::move(disk));
      // Others must not take a key's lease before its artifact is there for them to find.
      leases_->set_keeper(
          [writer = writer_](const CompileKey& key, std::shared_ptr<const void> held) {
            writer->keep(key, std::move(held));
          });
      disk = make_write_behind_tier(writer_);
    }
    tiers_.push_back(std::move(disk));
    if (dir_->state().ok()) disk_dir_ = dir_->path();
  }

  absl::StatusOr<std::optional<Found>> found_in(std::size_t tier,
                                                std::shared_ptr<const Artifact> artifact) {
    for (std::size_t before = tier; before-- > 0;) {
      // A layer is as near as the disk: a second copy would cost a write and save nothing.
      if (tiers_[tier]->kind() == TierKind::layer && tiers_[before]->kind() == TierKind::disk)
        continue;
      KILN_RETURN_IF_ERROR(tiers_[before]->put(artifact));
    }
    ++hits_[static_cast<std::size_t>(tiers_[tier]->kind())];
    return Found{std::move(artifact), tiers_[tier]->kind()};
  }

  std::vector<std::unique_ptr<Tier>> tiers_;  // fixed after construction
  std::shared_ptr<const CacheDir> dir_;
  std::shared_ptr<LeaseFiles> leases_;
  std::shared_ptr<WriteBehind> writer_;    // null: puts write themselves
  const LayerTier* layer_tier_ = nullptr;  // one of the tiers
  std::string disk_dir_;
  std::atomic<std::int64_t> hits_[4] = {};  // by TierKind
  std::atomic<std::int64_t> misses_{0};
  std::atomic<std::int64_t> stored_{0};
};

}  // namespace

std::string_view to_string(TierKind kind) {
  switch (kind) {
    case TierKind::memory:
      return "memory";
    case TierKind::disk:
      return "disk";
    case TierKind::layer:
      return "layer";
    case TierKind::remote:
      return "remote";
  }
  return "invalid";
}

std::string default_cache_dir() {
  if (auto dir = from_environment("KILN_CACHE_DIR")) return *dir;
  // The XDG rules say that a path that is not absolute is to be ignored.
  if (auto base = from_environment("XDG_CACHE_HOME"); base && base->front() == '/')
    return *base + "/kiln";
  if (auto home = from_environment("HOME")) return *home + "/.cache/kiln";
  return "";
}

absl::StatusOr<std::int64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string unit(text.substr(digits));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.size() == 3 && unit.substr(1) == "ib") unit.resize(1);
  const std::size_t power = std::string_view("kmgt").find(unit.empty() ? '?' : unit[0]);
  std::int64_t value = 0;
  const bool known = unit.empty() || (unit.size() == 1 && power != std::string_view::npos);
  const int shift = unit.empty() ? 0 : static_cast<int>(10 * (power + 1));
  if (digits == 0 || !known || !absl::SimpleAtoi(std::string(text.substr(0, digits)), &value) ||
      value > std::numeric_limits<std::int64_t>::max() >> shift) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a size must be a number of bytes, also with K, M, G or T behind it, got '%s'", text));
  }
  return value << shift;
}

std::unique_ptr<Store> make_store(const StoreOptions& options) {
  return make_store(options, real_file_system());
}

std::unique_ptr<Store> make_store(const StoreOptions& options, FileSystem& fs) {
  return std::make_unique<TieredStore>(options, fs);
}

}  // namespace kiln::cache
