#ifndef KILN_CACHE_REMOTE_H_
#define KILN_CACHE_REMOTE_H_

#include "cache/signature.h"

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::cache {

// When a store that gives trouble is left alone: after `failures` in a row for `first_pause`, then
// one request tries it; each time that fails the pause doubles, up to `longest_pause`.
struct BreakerRules {
  int failures = 3;
  absl::Duration first_pause = absl::Seconds(1);
  absl::Duration longest_pause = absl::Seconds(60);
};

// What signs requests to an S3 store; where it is not in RemoteOptions or the URL.
struct AwsCredentials {
  std::string access_key, secret_key;
  std::string session_token;  // of keys that end; empty: they do not
  std::string region;         // empty: us-east-1
};

// A store that machines share, and how it is used. Holds secrets: never printed or logged.
struct RemoteOptions {
  // redis://, rediss:// (TLS), http://, https://, s3+http:// or s3+https:// (requests are signed,
  // by AWS Signature Version 4; may end with ?region=NAME); empty: no remote tier
  std::string url;
  std::string user, password;  // instead of those in the URL
  std::string token;           // HTTP: a bearer token instead of user and password
  AwsCredentials aws;
  std::string ca_file;                        // whom TLS trusts, PEM; empty: whom the system trusts
  absl::Duration timeout = absl::Seconds(1);  // of one request; of a write, ten times that
  std::int64_t max_bytes = 64ll << 20;        // values beyond it are neither read nor written
  bool read_only = false;
  std::optional<SigningKey> signing_key;  // signs what is written
  BreakerRules breaker;
  absl::Duration remember_missing = absl::Seconds(5);  // what was not there is not asked for again
  // How long the right to build stays without a beat of its holder.
  absl::Duration lease_life = absl::Seconds(10);
};

// What happened. A miss is an answer; an error is none.
struct RemoteStats {
  std::int64_t hits = 0, misses = 0, stored = 0;
  std::int64_t errors = 0;       // no answer, a refusal, or an answer that is none
  std::int64_t damaged = 0;      // values that were there and were not what they must be
  std::int64_t skipped = 0;      // requests not made while the store was left alone
  std::int64_t opened = 0;       // times it was begun to be left alone
  std::int64_t dropped = 0;      // writes given up because too many waited
  std::int64_t lease_waits = 0;  // times another machine's build was waited for
};

struct RemoteInfo {
  std::string address;         // without user, password and token
  std::string reason;          // why it is not used; empty: it is
  bool is_left_alone = false;  // now, after failures
  RemoteStats stats;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_H_
