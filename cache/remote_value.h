#ifndef KILN_CACHE_REMOTE_VALUE_H_
#define KILN_CACHE_REMOTE_VALUE_H_

#include <kiln/export.h>

#include "cache/artifact.h"
#include "cache/signature.h"

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace kiln::cache {

// `bytes` as a remote store keeps them, with a signature before them where there is a key to sign
// with. `kind` is signed with them: a signature of one kind of thing is none of another.
KILN_EXPORT std::string seal(std::string_view kind, std::string_view bytes, const SigningKey* key);
// The bytes in `value`, a part of it. PermissionDenied: not signed by a trusted key, where one is
// required.
KILN_EXPORT absl::StatusOr<std::string_view> unseal(std::string_view kind, std::string_view value,
                                                    const TrustedKeys& trusted);

// What a remote store keeps under a key: an artifact's file, with a signature before it where there
// is a key to sign with (docs/cache_format.md).
KILN_EXPORT std::string make_remote_value(const Artifact& artifact, const SigningKey* key);

// The artifact in it; nothing of it is believed before everything is checked: the signature where
// one is required, the checksum, and that the fields make the key. Errors: PermissionDenied (not
// signed by a trusted key), DataLoss, FailedPrecondition (another format).
KILN_EXPORT absl::StatusOr<Artifact> read_remote_value(std::string_view value,
                                                       const TrustedKeys& trusted);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_VALUE_H_
