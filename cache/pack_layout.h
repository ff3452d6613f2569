#ifndef KILN_CACHE_PACK_LAYOUT_H_
#define KILN_CACHE_PACK_LAYOUT_H_

#include "cache/signature.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What writer and reader of a pack share. The grammar is in docs/cache_format.md; a change there is
// a new version.
namespace kiln::cache::pack_layout {

constexpr std::string_view kMagic("\x89KPACK\r\n", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kSigned = 1;     // flag of a pack
constexpr std::uint32_t kPreferred = 1;  // flag of an artifact
constexpr std::size_t kHeadBytes = 8 + 4 * 6 + 8 + 16;
constexpr std::size_t kArtifactBytes = 32 + 4 * 6;
constexpr std::size_t kBlobBytes = 8 + 8 + 16 + 32;
constexpr std::size_t kTuningBytes = 8;
constexpr std::size_t kTrailerBytes = 32 + 64;
constexpr std::size_t kMaxArtifacts = 1u << 22;
constexpr std::size_t kMaxBlobs = 1u << 26;

// What is signed: the digest of head and tables, which hold the digests of everything else. The
// words in front keep a signature made for something else from being one of a pack.
inline std::string signed_message(std::string_view head_and_tables) {
  return "kiln pack 1\n" + digest_of(head_and_tables);
}

}  // namespace kiln::cache::pack_layout

#endif  // KILN_CACHE_PACK_LAYOUT_H_
