#include "cache/store.h"

#include <kiln/status.h>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/striped_counter.h"
#include "cache/cache_dir.h"
#include "cache/disk_tier.h"
#include "cache/layer_tier.h"
#include "cache/lease.h"
#include "cache/memory_tier.h"
#include "cache/remote_lease.h"
#include "cache/remote_records.h"
#include "cache/remote_tier.h"
#include "cache/tier.h"
#include "cache/write_behind.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
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

// What a lease holds until what was put under its key is written, and by whom.
struct HeldLeases {
  struct One {
    std::shared_ptr<const void> held;
    std::shared_ptr<WriteBehind> writer;  // null: nothing is written behind
  };
  CompileKey key;
  std::vector<One> held;
};

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
    if (!options.layers.empty()) {
      std::unique_ptr<LayerTier> layers = make_layer_tier(fs, options.layers, options.trusted_keys);
      layer_tier_ = layers.get();
      tiers_.push_back(std::move(layers));
    }
    if (!options.remote.url.empty()) add_remote(options);
  }

  absl::StatusOr<std::optional<Found>> find(const Artifact& wanted) override {
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact, tiers_[i]->find(wanted));
      if (artifact == nullptr) continue;
      return found_in(i, std::move(artifact));
    }
    misses_.add();
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

  bool may_have_source(const Artifact& wanted) override {
    return std::any_of(tiers_.begin(), tiers_.end(),
                       [&](const auto& tier) { return tier->may_have_source(wanted); });
  }

  bool flush(absl::Duration wait) override {
    const absl::Time end = steady_now() + wait;
    bool all = true;
    for (const auto& writer : {writer_, remote_writer_}) {
      if (writer != nullptr && !writer->flush(end - steady_now())) all = false;
    }
    return all;
  }

  absl::Status put(std::shared_ptr<const Artifact> artifact) override {
    if (artifact == nullptr)
      return absl::InvalidArgumentError("cache: put must get an artifact, got null");
    absl::Status first;
    // All tiers are tried: a strict store reports the disk's error, and the process still has its
    // artifact.
    for (const auto& tier : tiers_) first.Update(tier->put(artifact));
    if (first.ok()) stored_.add();
    return first;
  }

  absl::StatusOr<Lease> lease(const CompileKey& key, absl::Time deadline, bool is_local) override {
    HeldLeases leases{.key = key, .held = {}};
    if (leases_ != nullptr) {
      KILN_ASSIGN_OR_RETURN(LeaseFiles::Acquired on_disk, leases_->acquire(key, deadline));
      if (on_disk.is_built) return Lease();
      // Others must not take a key's lease before its artifact is there for them to find.
      if (on_disk.held != nullptr) leases.held.push_back({std::move(on_disk.held), writer_});
    }
    if (remote_leases_ != nullptr && !is_local) {
      KILN_ASSIGN_OR_RETURN(std::shared_ptr<const void> held,
                            remote_leases_->acquire(key, deadline));
      if (held != nullptr) leases.held.push_back({std::move(held), remote_writer_});
    }
    if (leases.held.empty()) return Lease();
    return Lease(std::make_unique<Lease::Impl>(std::move(leases)));
  }

  StoreStats stats() const override {
    StoreStats out;
    out.memory_hits = hits_[static_cast<std::size_t>(TierKind::memory)].value();
    out.disk_hits = hits_[static_cast<std::size_t>(TierKind::disk)].value();
    out.layer_hits = hits_[static_cast<std::size_t>(TierKind::layer)].value();
    out.remote_hits = hits_[static_cast<std::size_t>(TierKind::remote)].value();
    out.misses = misses_.value();
    out.stored = stored_.value();
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
    if (const std::optional<RemoteInfo> info = remote()) {
      out.errors += info->stats.errors;
      out.lease_waits += info->stats.lease_waits;
    }
    return out;
  }

  std::optional<RemoteInfo> remote() const override {
    if (link_ == nullptr) return remote_trouble_;
    RemoteInfo info = link_->info();
    info.stats.hits = hits_[static_cast<std::size_t>(TierKind::remote)].value();
    if (remote_writer_ != nullptr) info.stats.dropped = remote_writer_->dropped();
    return info;
  }

  const std::shared_ptr<RemoteRecords>& remote_records() const { return remote_records_; }

  absl::Status check_remote() override {
    if (link_ == nullptr) return absl::OkStatus();
    return link_->with_client([](RemoteClient& client) { return client.check(); });
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
      disk = make_write_behind_tier(writer_);
    }
    tiers_.push_back(std::move(disk));
    if (dir_->state().ok()) disk_dir_ = dir_->path();
  }

  void add_remote(const StoreOptions& options) {
    absl::StatusOr<std::shared_ptr<RemoteLink>> link = RemoteLink::make(options.remote);
    if (!link.ok()) {
      remote_trouble_ = RemoteInfo{.reason = message_of(link.status())};
      log_once(LogLevel::warning, "cache/remote", "no remote cache: " + remote_trouble_->reason);
      return;
    }
    link_ = *std::move(link);
    remote_records_ = std::make_shared<RemoteRecords>(link_, options.trusted_keys, options.strict);
    std::unique_ptr<Tier> remote = make_remote_tier(link_, options.trusted_keys, options.strict);
    if (!options.strict) {
      remote_writer_ = WriteBehind::make(std::move(remote), /*drop_when_full=*/true);
      remote = make_write_behind_tier(remote_writer_);
    }
    tiers_.push_back(std::move(remote));
    // Who writes nothing has nobody wait for it.
    if (link_->has_rights() && !options.remote.read_only)
      remote_leases_ = std::make_shared<RemoteLeases>(link_);
  }

  absl::StatusOr<std::optional<Found>> found_in(std::size_t tier,
                                                std::shared_ptr<const Artifact> artifact) {
    for (std::size_t before = tier; before-- > 0;) {
      // A layer is as near as the disk: a second copy would cost a write and save nothing.
      if (tiers_[tier]->kind() == TierKind::layer && tiers_[before]->kind() == TierKind::disk)
        continue;
      KILN_RETURN_IF_ERROR(tiers_[before]->put(artifact));
    }
    hits_[static_cast<std::size_t>(tiers_[tier]->kind())].add();
    return Found{std::move(artifact), tiers_[tier]->kind()};
  }

  std::vector<std::unique_ptr<Tier>> tiers_;  // fixed after construction
  std::shared_ptr<const CacheDir> dir_;
  std::shared_ptr<LeaseFiles> leases_;
  std::shared_ptr<WriteBehind> writer_;    // null: puts write themselves
  const LayerTier* layer_tier_ = nullptr;  // one of the tiers
  std::shared_ptr<RemoteLink> link_;       // null: there is no remote tier
  std::shared_ptr<RemoteRecords> remote_records_;
  std::shared_ptr<WriteBehind> remote_writer_;
  std::shared_ptr<RemoteLeases> remote_leases_;
  std::optional<RemoteInfo> remote_trouble_;  // why there is none, where one was asked for
  std::string disk_dir_;
  StripedCounter hits_[4];  // by TierKind
  StripedCounter misses_, stored_;
};

}  // namespace

class Lease::Impl {
 public:
  explicit Impl(HeldLeases leases) : leases_(std::move(leases)) {}
  ~Impl() {
    for (HeldLeases::One& one : leases_.held) {
      if (one.writer != nullptr) one.writer->keep(leases_.key, std::move(one.held));
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  HeldLeases leases_;
};

Lease::Lease() = default;
Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

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

std::shared_ptr<RemoteRecords> remote_records_of(const Store& store) {
  return static_cast<const TieredStore&>(store).remote_records();
}

std::unique_ptr<Store> make_store(const StoreOptions& options) {
  return make_store(options, real_file_system());
}

std::unique_ptr<Store> make_store(const StoreOptions& options, FileSystem& fs) {
  return std::make_unique<TieredStore>(options, fs);
}

}  // namespace kiln::cache
