#include "cache/signature.h"

#include <kiln/status.h>

#include "base/log.h"

#include <absl/strings/str_format.h>
#include <sodium.h>

#include <array>
#include <string>
#include <string_view>

namespace kiln::cache {
namespace {

static_assert(crypto_sign_PUBLICKEYBYTES == 32 && crypto_sign_SEEDBYTES == 32);
static_assert(crypto_sign_BYTES == kSignatureBytes && crypto_generichash_BYTES == kDigestBytes);

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// May be called from many threads and many times.
bool library_ready() { return ::sodium_init() >= 0; }

absl::StatusOr<std::array<unsigned char, 32>> parse_hex(std::string_view hex, const char* what) {
  std::array<unsigned char, 32> out{};
  std::size_t size = 0;
  const char* end = nullptr;
  if (hex.size() != 2 * out.size() ||
      ::sodium_hex2bin(out.data(), out.size(), hex.data(), hex.size(), nullptr, &size, &end) != 0 ||
      size != out.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s must be 64 hex digits, got %d characters that are not", what, hex.size()));
  }
  return out;
}

std::string hex_of(const std::array<unsigned char, 32>& bytes) {
  std::string out(2 * bytes.size() + 1, '\0');
  ::sodium_bin2hex(out.data(), out.size(), bytes.data(), bytes.size());
  out.pop_back();
  return out;
}

struct Pair {
  unsigned char public_part[crypto_sign_PUBLICKEYBYTES];
  unsigned char secret[crypto_sign_SECRETKEYBYTES];
  explicit Pair(const SigningKey& key) {
    ::crypto_sign_seed_keypair(public_part, secret, key.seed.data());
  }
  ~Pair() { ::sodium_memzero(secret, sizeof secret); }
};

}  // namespace

absl::StatusOr<PublicKey> parse_public_key(std::string_view hex) {
  PublicKey key;
  KILN_ASSIGN_OR_RETURN(key.bytes, parse_hex(hex, "a public key"));
  return key;
}

absl::StatusOr<SigningKey> parse_signing_key(std::string_view hex) {
  while (!hex.empty() && (hex.back() == '\n' || hex.back() == '\r')) hex.remove_suffix(1);
  SigningKey key;
  KILN_ASSIGN_OR_RETURN(key.seed, parse_hex(hex, "a signing key"));
  return key;
}

std::string to_hex(const PublicKey& key) { return hex_of(key.bytes); }
std::string to_hex(const SigningKey& key) { return hex_of(key.seed); }

TrustedKeys parse_trusted_keys(std::string_view list) {
  TrustedKeys out;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    if (part.empty()) continue;
    out.required = true;
    const absl::StatusOr<PublicKey> key = parse_public_key(part);
    if (key.ok()) {
      out.keys.push_back(*key);
    } else {
      log_once(LogLevel::warning, "cache/trusted_keys",
               "trusted keys: " + message_of(key.status()) + "; it vouches for nothing");
    }
  }
  return out;
}

absl::StatusOr<SigningKey> new_signing_key() {
  if (!library_ready()) return absl::InternalError("signing: libsodium must start, got a failure");
  SigningKey key;
  ::randombytes_buf(key.seed.data(), key.seed.size());
  return key;
}

PublicKey public_key(const SigningKey& key) {
  const Pair pair(key);
  PublicKey out;
  std::copy(std::begin(pair.public_part), std::end(pair.public_part), out.bytes.begin());
  return out;
}

std::string digest_of(std::string_view bytes) {
  library_ready();  // picks the fast code for this processor
  std::string out(kDigestBytes, '\0');
  ::crypto_generichash(reinterpret_cast<unsigned char*>(out.data()), out.size(), bytes_of(bytes),
                       bytes.size(), nullptr, 0);
  return out;
}

std::string sign(const SigningKey& key, std::string_view message) {
  const Pair pair(key);
  std::string out(kSignatureBytes, '\0');
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(out.data()), nullptr, bytes_of(message),
                         message.size(), pair.secret);
  return out;
}

bool is_signed_by(const PublicKey& key, std::string_view message, std::string_view signature) {
  return signature.size() == kSignatureBytes &&
         ::crypto_sign_verify_detached(bytes_of(signature), bytes_of(message), message.size(),
                                       key.bytes.data()) == 0;
}

}  // namespace kiln::cache
