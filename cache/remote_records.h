#ifndef KILN_CACHE_REMOTE_RECORDS_H_
#define KILN_CACHE_REMOTE_RECORDS_H_

#include <kiln/export.h>

#include "cache/signature.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::cache {

class RemoteLink;

// Tuning records, as text, in a store that machines share: each under a key of its own made of its
// name, signed like artifacts. Trouble of the store is counted, is warned of once and is "none",
// unless `strict`. What is not there is asked for each time: a record is looked for once for each
// kernel that is built, and again by who waited for another's sweep. Thread-safe.
class RemoteRecords {
 public:
  RemoteRecords(std::shared_ptr<RemoteLink> link, const TrustedKeys& trusted, bool strict)
      : link_(std::move(link)), trusted_(trusted), strict_(strict) {}

  absl::StatusOr<std::optional<std::string>> find(const std::string& name);
  // Seen by others when this returns. Ok where the store is only read, or `text` is too large.
  absl::Status put(const std::string& name, std::string_view text);

 private:
  absl::Status trouble(const absl::Status& status) const;

  const std::shared_ptr<RemoteLink> link_;
  const TrustedKeys trusted_;
  const bool strict_;
};

class Store;

// Those of the remote store that `store`, of `make_store`, has; null where it has none.
KILN_EXPORT std::shared_ptr<RemoteRecords> remote_records_of(const Store& store);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_RECORDS_H_
