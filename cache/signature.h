#ifndef KILN_CACHE_SIGNATURE_H_
#define KILN_CACHE_SIGNATURE_H_

#include <kiln/export.h>

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Ed25519 signatures and the BLAKE2b-256 digests that they stand on, both libsodium's. Thread-safe.
namespace kiln::cache {

constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kSignatureBytes = 64;

struct PublicKey {
  std::array<unsigned char, 32> bytes{};
  auto operator<=>(const PublicKey&) const = default;
};

// A secret: never logged, never in a message.
struct SigningKey {
  std::array<unsigned char, 32> seed{};
};

// Whose signatures are believed. With `required` and no keys nothing is: a list of keys that could
// not be read must not open the door.
struct TrustedKeys {
  bool required = false;
  std::vector<PublicKey> keys;
};

// 64 hex digits. InvalidArgument for anything else; the message does not repeat it.
KILN_EXPORT absl::StatusOr<PublicKey> parse_public_key(std::string_view hex);
KILN_EXPORT absl::StatusOr<SigningKey> parse_signing_key(std::string_view hex);
KILN_EXPORT std::string to_hex(const PublicKey& key);
KILN_EXPORT std::string to_hex(const SigningKey& key);

// The keys of a list parted by commas; empty: nothing is required. A part that is no key is warned
// of, and `required` stays.
KILN_EXPORT TrustedKeys parse_trusted_keys(std::string_view list);

KILN_EXPORT absl::StatusOr<SigningKey> new_signing_key();
KILN_EXPORT PublicKey public_key(const SigningKey& key);

KILN_EXPORT std::string digest_of(std::string_view bytes);                      // kDigestBytes
KILN_EXPORT std::string sign(const SigningKey& key, std::string_view message);  // kSignatureBytes
KILN_EXPORT bool is_signed_by(const PublicKey& key, std::string_view message,
                              std::string_view signature);

}  // namespace kiln::cache

#endif  // KILN_CACHE_SIGNATURE_H_
