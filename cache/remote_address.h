#ifndef KILN_CACHE_REMOTE_ADDRESS_H_
#define KILN_CACHE_REMOTE_ADDRESS_H_

#include "cache/curl_functions.h"
#include "cache/remote.h"

#include <absl/status/statusor.h>

#include <string>

namespace kiln::cache {

// The parts of a remote store's URL.
struct RemoteAddress {
  std::string scheme;  // "redis", "rediss", "http", "https"
  std::string host;    // an IPv6 address in brackets
  std::string port;    // always there
  std::string path;    // without a slash at its end: "/kiln", "/0", ""
  // Those of the options go before those of the URL, and both before AWS's where requests are
  // signed.
  std::string user, password, session_token;
  std::string region;  // not empty: requests are signed as S3's are
  bool is_signed() const { return !region.empty(); }
  bool is_tls() const { return scheme == "rediss" || scheme == "https"; }
  bool is_redis() const { return scheme == "redis" || scheme == "rediss"; }
  // What may be shown to anybody.
  std::string text() const { return scheme + "://" + host + ":" + port + path; }
};

// InvalidArgument says what must hold and never repeats the URL: it may hold a password.
absl::StatusOr<RemoteAddress> parse_remote_address(const CurlFunctions& curl,
                                                   const RemoteOptions& options);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_ADDRESS_H_
