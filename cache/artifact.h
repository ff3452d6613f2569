#ifndef KILN_CACHE_ARTIFACT_H_
#define KILN_CACHE_ARTIFACT_H_

#include <kiln/export.h>
#include <kiln/shared_text.h>

#include "base/hash128.h"

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {

// Part of every file and every key; raised with each change of the layout (docs/cache_format.md).
inline constexpr std::uint32_t kArtifactFormatVersion = 1;

// One named part of what a compile key was made of, with its full value: a hit compares them all,
// so that a hash collision is a miss, and a miss can be explained field by field.
struct KeyField {
  std::string name;
  SharedText value;  // sources are in many artifacts, and are compared at each hit
  bool operator==(const KeyField&) const = default;
};

// What an artifact is found by. `source` is the hash of the source fields, `compiler` of the
// compiler fields.
struct CompileKey {
  Hash128 source;
  Hash128 compiler;
  auto operator<=>(const CompileKey&) const = default;  // NOLINT(modernize-use-nullptr): no pointer
};

// 64 hex digits: source, then compiler.
KILN_EXPORT std::string to_hex(const CompileKey& key);
KILN_EXPORT std::optional<CompileKey> parse_compile_key(std::string_view hex);

struct CompileKeyHasher {
  std::size_t operator()(const CompileKey& k) const {
    return static_cast<std::size_t>(k.source.low ^ (k.compiler.low * 0x9e3779b97f4a7c15ull));
  }
};

// The kind of an image that is code for the process that loads it: never taken from other machines.
inline constexpr std::string_view kHostObject = "host_object";

// The compiled result of a program. Immutable once made; shared as `std::shared_ptr<const
// Artifact>`.
struct Artifact {
  CompileKey key;
  std::vector<KeyField> source_fields;
  std::vector<KeyField> compiler_fields;
  std::string kind;      // "cubin", "ptx", "host_object"
  std::string metadata;  // JSON: kernels with registers, shared memory, spills; nothing that
                         // differs from run to run
  std::string image;     // uncompressed
};

// The key that `fields` make: XXH3-128 over name and value of each, length-prefixed, in order.
KILN_EXPORT Hash128 hash_fields(const std::vector<KeyField>& fields);

// The file form (docs/cache_format.md), and back. `parse_artifact` accepts exactly what `serialize`
// makes: it checks the checksum before it looks at anything else and never reads outside `bytes`.
// Errors: DataLoss (torn, damaged, foreign), FailedPrecondition (another format version).
KILN_EXPORT std::string serialize(const Artifact& artifact);
KILN_EXPORT absl::StatusOr<Artifact> parse_artifact(std::string_view bytes);

}  // namespace kiln::cache

#endif  // KILN_CACHE_ARTIFACT_H_
