#ifndef KILN_CACHE_PACK_H_
#define KILN_CACHE_PACK_H_

#include <kiln/export.h>

#include "base/mapping.h"
#include "base/mutex.h"
#include "cache/artifact.h"
#include "cache/signature.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {
class FileSystem;
}  // namespace kiln

namespace kiln::cache {

// What goes into a pack. Order and repetition do not matter.
struct PackContents {
  std::vector<std::shared_ptr<const Artifact>> artifacts;
  std::vector<std::pair<std::string, std::string>> tuning;  // name and JSON of each tuning record
};

// The bytes of a pack (docs/cache_format.md). The same contents give the same bytes on every
// machine: sorted, no time, no path, images as they are (a container layer or a transfer compresses
// them better than one by one). Of artifacts with one source key and several compilers the one
// whose compiler is last in order is the preferred one. InvalidArgument: two different artifacts of
// one key, or more than a pack can hold.
KILN_EXPORT absl::StatusOr<std::string> make_pack(PackContents contents,
                                                  const SigningKey* key = nullptr);

// One file holding many artifacts. Opening reads and checks the tables alone; an artifact is
// checked when it is read. Immutable; thread-safe.
class KILN_EXPORT Pack {
 public:
  // Errors: DataLoss (torn, damaged, foreign), FailedPrecondition (another version),
  // PermissionDenied (`trusted` requires a signature and there is none of its keys).
  static absl::StatusOr<std::unique_ptr<Pack>> open(Mapping mapping, const TrustedKeys& trusted);
  // The same on bytes that outlive the pack.
  static absl::StatusOr<std::unique_ptr<Pack>> open(std::string_view bytes,
                                                    const TrustedKeys& trusted);

  std::size_t size() const { return artifact_count_; }
  CompileKey key(std::size_t index) const;
  std::int64_t image_bytes(std::size_t index) const;
  bool is_preferred(std::size_t index) const;
  bool has_source(const Hash128& source) const;  // an artifact with this half of a key
  // By one of the trusted keys; false when none was asked for.
  bool is_signed() const { return signed_; }

  // The artifact with key and fields of `wanted`, or null. DataLoss: it is there and damaged.
  absl::StatusOr<std::shared_ptr<const Artifact>> find(const Artifact& wanted) const;
  // The preferred artifact with the source fields of `wanted`, or null.
  absl::StatusOr<std::shared_ptr<const Artifact>> find_by_source(const Artifact& wanted) const;
  // Everything of one artifact, everything checked. `index` < size().
  absl::StatusOr<Artifact> artifact(std::size_t index) const;

  std::size_t tuning_size() const { return tuning_count_; }
  absl::StatusOr<std::pair<std::string, std::string>> tuning(std::size_t index) const;

 private:
  struct Row;
  Pack() = default;
  absl::Status read_head(const TrustedKeys& trusted);
  absl::Status check_tables() const;
  absl::Status check_signature(const TrustedKeys& trusted, std::string_view signature);
  Row row(std::size_t index) const;
  std::string_view raw_blob(std::uint32_t id) const;
  absl::StatusOr<std::string_view> blob(std::uint32_t id) const;
  absl::StatusOr<std::vector<KeyField>> fields(std::uint32_t id) const;
  bool same_fields(std::uint32_t id, const std::vector<KeyField>& fields) const;
  bool same_text(std::uint32_t id, const SharedText& text) const;
  absl::StatusOr<std::shared_ptr<const Artifact>> load(const Row& row, const Artifact& wanted,
                                                       bool same_compiler) const;
  std::size_t lower_bound(const CompileKey& key) const;
  void read_ahead() const;

  Mapping mapping_;
  std::string_view bytes_;
  std::string_view artifacts_, blobs_, tuning_, data_;
  std::size_t artifact_count_ = 0, blob_count_ = 0, tuning_count_ = 0;
  bool signed_ = false;
  mutable std::once_flag read_ahead_;
  // Long texts of requests that were found equal to a blob: the artifacts of a pack share sources,
  // which are compared once then.
  mutable Mutex mutex_;
  mutable absl::flat_hash_map<std::uint32_t, SharedText> equal_texts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_PACK_H_
