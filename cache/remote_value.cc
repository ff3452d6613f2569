#include "cache/remote_value.h"

#include <kiln/status.h>

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln::cache {
namespace {

constexpr std::string_view kMagic("\x89KSIGN\r\n", 8);
constexpr std::size_t kHeadBytes = kMagic.size() + 32 + kSignatureBytes;

constexpr std::string_view kArtifact = "artifact";

std::string signed_message(std::string_view kind, std::string_view bytes) {
  return "kiln " + std::string(kind) + " 1\n" + digest_of(bytes);
}

absl::Status check_signature(std::string_view kind, std::string_view head, std::string_view bytes,
                             const TrustedKeys& trusted) {
  if (head.empty())
    return absl::PermissionDeniedError("value: must be signed by a trusted key, got no signature");
  PublicKey who;
  std::copy_n(head.begin() + kMagic.size(), who.bytes.size(), who.bytes.begin());
  if (std::find(trusted.keys.begin(), trusted.keys.end(), who) == trusted.keys.end()) {
    return absl::PermissionDeniedError(
        absl::StrFormat("value: must be signed by a trusted key, got one by %s", to_hex(who)));
  }
  if (!is_signed_by(who, signed_message(kind, bytes),
                    head.substr(kMagic.size() + who.bytes.size()))) {
    return absl::PermissionDeniedError(
        absl::StrFormat("value: the signature by %s must be right, got a wrong one", to_hex(who)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string seal(std::string_view kind, std::string_view bytes, const SigningKey* key) {
  if (key == nullptr) return std::string(bytes);
  const PublicKey who = public_key(*key);
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(who.bytes.data()), who.bytes.size());
  out += sign(*key, signed_message(kind, bytes));
  return out.append(bytes);
}

absl::StatusOr<std::string_view> unseal(std::string_view kind, std::string_view value,
                                        const TrustedKeys& trusted) {
  const bool is_signed = value.size() >= kHeadBytes && value.substr(0, kMagic.size()) == kMagic;
  const std::string_view head = value.substr(0, is_signed ? kHeadBytes : 0);
  const std::string_view bytes = value.substr(head.size());
  if (trusted.required) KILN_RETURN_IF_ERROR(check_signature(kind, head, bytes, trusted));
  return bytes;
}

std::string make_remote_value(const Artifact& artifact, const SigningKey* key) {
  return seal(kArtifact, serialize(artifact), key);
}

absl::StatusOr<Artifact> read_remote_value(std::string_view value, const TrustedKeys& trusted) {
  KILN_ASSIGN_OR_RETURN(const std::string_view file, unseal(kArtifact, value, trusted));
  KILN_ASSIGN_OR_RETURN(Artifact artifact, parse_artifact(file));
  if (hash_fields(artifact.source_fields) != artifact.key.source ||
      hash_fields(artifact.compiler_fields) != artifact.key.compiler) {
    return absl::DataLossError(
        absl::StrFormat("value: its fields must make its key, got those of another under %s",
                        to_hex(artifact.key)));
  }
  return artifact;
}

}  // namespace kiln::cache
