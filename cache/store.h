#ifndef KILN_CACHE_STORE_H_
#define KILN_CACHE_STORE_H_

#include <kiln/export.h>

#include "cache/artifact.h"
#include "cache/remote.h"
#include "cache/signature.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {
class FileSystem;
}  // namespace kiln

namespace kiln::cache {

// Where an artifact was found.
enum class TierKind { memory, disk, layer, remote };
KILN_EXPORT std::string_view to_string(TierKind kind);

struct StoreOptions {
  std::string disk_dir;  // empty: no disk tier. See `default_cache_dir()`
  std::int64_t max_memory_bytes = 256ll << 20;
  std::int64_t max_disk_bytes = 4ll << 30;  // least recently used files go beyond it; 0: no limit
  bool group_shared = false;  // the disk folder is its group's: members are trusted like this user
  bool write_behind = false;  // `put` leaves the disk to a thread; not together with `strict`
  std::vector<std::string> layers;  // read-only: folders in the form of a cache folder, and packs
  TrustedKeys trusted_keys;         // of packs and remote values; none: they need no signature
  RemoteOptions remote;             // asked last; writes to it are behind `put` unless `strict`
  bool strict = false;              // KILN_STRICT=1: what is otherwise one warning is an error
  absl::Duration lease_wait =
      absl::Seconds(60);  // how long a holder without a heartbeat may delay others
  absl::Duration heartbeat = absl::Seconds(1);
};

// $KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln; empty when there is none of them.
KILN_EXPORT std::string default_cache_dir();

// "4294967296", "512M", "4G", "1GiB": at least 0. InvalidArgument names what was received.
KILN_EXPORT absl::StatusOr<std::int64_t> parse_bytes(std::string_view text);

struct Found {
  std::shared_ptr<const Artifact> artifact;
  TierKind tier;
};

struct StoreStats {
  std::int64_t memory_hits = 0, disk_hits = 0, layer_hits = 0, remote_hits = 0, misses = 0;
  std::int64_t stored = 0, quarantined = 0, evicted = 0, errors = 0, lease_waits = 0;
  std::int64_t bytes_read = 0, bytes_written = 0;
};

// A read-only layer, and whether it is used.
struct LayerInfo {
  std::string path;
  bool is_pack = false;
  bool is_signed = false;       // by a trusted key
  std::int64_t artifacts = -1;  // -1: not counted, as of folders
  std::int64_t hits = 0;        // in this process
  std::string reason;           // why it is skipped; empty: it is used
};

// A right to build one key that other processes respect; released by the destructor. Move-only.
class KILN_EXPORT Lease {
 public:
  class Impl;
  Lease();
  explicit Lease(std::unique_ptr<Impl> impl);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

 private:
  std::unique_ptr<Impl> impl_;
};

// The tiers in order: memory, disk, layers, remote. A hit fills the tiers before it. Thread-safe.
// I/O trouble never fails a caller (unless `strict`): one warning a kind, a counter, and the
// process works on from memory.
class KILN_EXPORT Store {
 public:
  virtual ~Store() = default;

  // The artifact whose key and fields are those of `wanted` (image and metadata are not looked at,
  // and of the kind only whether it is kHostObject, which no remote store is asked for), or
  // nullopt. A damaged file is set aside, counted, and is a miss.
  virtual absl::StatusOr<std::optional<Found>> find(const Artifact& wanted) = 0;

  // The artifact with the source key and source fields of `wanted`, whatever compiled it: the one
  // that a layer names for this source, else the first in the order of tiers, of each the newest.
  // For where no compiler is or none may run.
  virtual absl::StatusOr<std::optional<Found>> find_by_source(const Artifact& wanted) = 0;

  // False: as far as a look at names tells, without reading and without a question to a remote
  // store, no tier has anything of this source, and `find` will miss. A guess: others may put it
  // meanwhile.
  virtual bool may_have_source(const Artifact& wanted) = 0;

  // Keeps `artifact` in every tier that can be written. It is visible to `find` of this process
  // when this returns; a reader in another process sees all of it or none.
  virtual absl::Status put(std::shared_ptr<const Artifact> artifact) = 0;

  // Waits until this process may build `key`, or until somebody else has: the caller looks with
  // `find` again after it and before it builds. Never waits longer than `lease_wait` for a holder
  // that is dead, stopped or silent, nor beyond `deadline` (then DeadlineExceeded). First among the
  // processes that share the disk, then, unless `is_local`, among the machines that share the
  // remote store, where that keeps leases. With neither: returns at once.
  virtual absl::StatusOr<Lease> lease(const CompileKey& key, absl::Time deadline,
                                      bool is_local = false) = 0;

  // Waits until everything that was put is written, at most `wait`. False: it is not. The
  // destructor and the end of the process do it too, for a few seconds.
  virtual bool flush(absl::Duration wait) = 0;

  virtual StoreStats stats() const = 0;
  virtual std::vector<LayerInfo> layers() const = 0;
  virtual std::optional<RemoteInfo> remote() const = 0;  // nullopt: none is asked for
  // Whether the remote store answers; ok where none is asked for.
  virtual absl::Status check_remote() = 0;
  virtual const std::string& disk_dir() const = 0;  // empty when there is no disk tier in force
};

KILN_EXPORT std::unique_ptr<Store> make_store(const StoreOptions& options);
// The same on another file system, which must outlive the store and its leases (tests let it fail).
KILN_EXPORT std::unique_ptr<Store> make_store(const StoreOptions& options, FileSystem& fs);

}  // namespace kiln::cache

#endif  // KILN_CACHE_STORE_H_
