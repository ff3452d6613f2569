#ifndef KILN_CACHE_REMOTE_CLIENT_H_
#define KILN_CACHE_REMOTE_CLIENT_H_

#include "cache/remote_address.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

// The right to build something, under its name in the store; `token` tells holders apart.
struct RemoteRight {
  std::string name, token;
  bool operator==(const RemoteRight&) const = default;
};

// One kind of store. Names are 64 hex digits. Thread-safe. Errors: Unavailable and
// DeadlineExceeded (no answer), PermissionDenied (credentials), ResourceExhausted (a value beyond
// the limit; the store works), Unimplemented. No message holds a credential, or a byte that the
// store sent beyond a number or the first word of an error.
class RemoteClient {
 public:
  virtual ~RemoteClient() = default;

  // Whether the store answers us.
  virtual absl::Status check() = 0;
  // nullopt: the store says that there is none.
  virtual absl::StatusOr<std::optional<std::string>> get(const std::string& name) = 0;
  virtual absl::Status put(const std::string& name, std::string_view value) = 0;

  // Rights, where the store can keep them.
  enum class Claim { mine, held, built };  // built: a value is there, and the right is not taken
  virtual bool has_rights() const { return false; }
  virtual absl::StatusOr<Claim> claim(const RemoteRight&) {
    return absl::UnimplementedError("the store keeps no rights");
  }
  // Those that are somebody else's by now are left as they are.
  virtual absl::Status extend(const std::vector<RemoteRight>&) {
    return absl::UnimplementedError("the store keeps no rights");
  }
  virtual absl::Status release(const RemoteRight&) {
    return absl::UnimplementedError("the store keeps no rights");
  }
};

std::unique_ptr<RemoteClient> make_http_client(const CurlFunctions& curl, RemoteAddress address,
                                               const RemoteOptions& options);
std::unique_ptr<RemoteClient> make_redis_client(const CurlFunctions& curl, RemoteAddress address,
                                                const RemoteOptions& options);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_CLIENT_H_
