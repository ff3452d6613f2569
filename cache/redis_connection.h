#ifndef KILN_CACHE_REDIS_CONNECTION_H_
#define KILN_CACHE_REDIS_CONNECTION_H_

#include "cache/curl_functions.h"
#include "cache/remote_address.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

struct RedisReply {
  int type = REDIS_REPLY_NIL;
  long long integer = 0;
  std::string text;  // of a string, a status or an error
};

using RedisCommand = std::vector<std::string_view>;

// One connection to Redis or Valkey: hiredis writes and reads the protocol, libcurl connects, with
// TLS where asked for (Debian's hiredis has none). Move-only; one thread at a time.
class RedisConnection {
 public:
  // Connects and, where the address says so, gives credentials and chooses the database.
  // PermissionDenied: they were refused.
  static absl::StatusOr<RedisConnection> open(const CurlFunctions& curl,
                                              const RemoteAddress& address,
                                              const std::string& ca_file, absl::Time deadline);

  // Sends the commands at once and reads as many replies. A reply beyond `max_bytes` is
  // ResourceExhausted. After any error the connection is of no use.
  absl::StatusOr<std::vector<RedisReply>> exchange(const std::vector<RedisCommand>& commands,
                                                   std::size_t max_bytes, absl::Time deadline);

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const { ::redisReaderFree(reader); }
  };
  RedisConnection(const CurlFunctions& curl, CurlHandle handle);
  absl::Status send(std::string_view bytes, absl::Time deadline);
  absl::StatusOr<RedisReply> receive(std::size_t max_bytes, absl::Time deadline);
  absl::Status wait(short events, absl::Time deadline) const;

  const CurlFunctions* curl_;
  CurlHandle handle_;
  int socket_ = -1;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

// Ok unless `reply` is an error. Only its first word is repeated: Redis may quote what it was sent.
absl::Status status_of_reply(const RedisReply& reply);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REDIS_CONNECTION_H_
