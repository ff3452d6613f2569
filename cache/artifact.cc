#include "cache/artifact.h"

#include <kiln/status.h>

#include "cache/bytes.h"

#include <absl/strings/str_format.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The grammar is in docs/cache_format.md; a change there is a new version.
namespace kiln::cache {
namespace {

constexpr std::string_view kMagic("\x89KILNA\r\n", 8);

constexpr std::size_t kChecksumBytes = 16;
constexpr std::size_t kSmallestFile = kMagic.size() + 4 + kChecksumBytes;
// zstd's default: cubins shrink to about a third, and a higher level gains little for its time.
constexpr int kCompressionLevel = 3;
constexpr std::uint64_t kMaxImageBytes = 1ull << 30;
constexpr std::uint32_t kMaxFields = 1u << 16;

void append_fields(std::string& out, const std::vector<KeyField>& fields) {
  append_u32(out, static_cast<std::uint32_t>(fields.size()));
  for (const KeyField& field : fields) {
    append_length_prefixed(out, field.name);
    append_length_prefixed(out, field.value);
  }
}

std::vector<KeyField> read_fields(Reader& reader) {
  const std::uint32_t count = reader.u32();
  std::vector<KeyField> out;
  if (count > kMaxFields) reader.fail();
  for (std::uint32_t i = 0; reader.ok() && i < count; ++i) {
    const std::string_view name = reader.prefixed();
    out.push_back({std::string(name), std::string(reader.prefixed())});
  }
  return out;
}

// Compression whose output depends on nothing but the bytes: one thread, fixed level, size in the
// frame.
std::string compress(std::string_view image) {
  std::string out(ZSTD_compressBound(image.size()), '\0');
  const std::size_t size =
      ZSTD_compress(out.data(), out.size(), image.data(), image.size(), kCompressionLevel);
  // Only lack of memory can fail here; a file without payload is then refused by every reader.
  out.resize(ZSTD_isError(size) ? 0 : size);
  return out;
}

absl::StatusOr<std::string> decompress(std::string_view payload, std::uint64_t image_bytes) {
  if (image_bytes > kMaxImageBytes) {
    return absl::DataLossError(absl::StrFormat(
        "artifact: the image must have at most %d bytes, got %d", kMaxImageBytes, image_bytes));
  }
  // What the frame says is compared before memory is taken for it.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != image_bytes ||
      ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
    return absl::DataLossError(
        "artifact: the payload must be one frame of the stated size, got another");
  }
  std::string out(static_cast<std::size_t>(image_bytes), '\0');
  const std::size_t size = ZSTD_decompress(out.data(), out.size(), payload.data(), payload.size());
  if (ZSTD_isError(size) || size != out.size()) {
    return absl::DataLossError("artifact: the payload must decompress, got damaged data");
  }
  return out;
}

// Magic and checksum, which all versions share; leaves what is between magic and checksum.
absl::StatusOr<std::string_view> checked_body(std::string_view bytes) {
  if (bytes.size() < kSmallestFile || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(absl::StrFormat(
        "artifact: must begin as an artifact file does, got %d other bytes", bytes.size()));
  }
  const std::size_t covered = bytes.size() - kChecksumBytes;
  const Hash128 stored = Reader(bytes.substr(covered)).hash();
  const Hash128 actual = hash128(bytes.substr(0, covered));
  if (stored != actual) {
    return absl::DataLossError(
        absl::StrFormat("artifact: checksum must be %s, got %s", to_hex(stored), to_hex(actual)));
  }
  return bytes.substr(kMagic.size(), covered - kMagic.size());
}

}  // namespace

std::string to_hex(const CompileKey& key) { return to_hex(key.source) + to_hex(key.compiler); }

std::optional<CompileKey> parse_compile_key(std::string_view hex) {
  if (hex.size() != 64) return std::nullopt;
  const auto source = parse_hash128(hex.substr(0, 32));
  const auto compiler = parse_hash128(hex.substr(32));
  if (!source || !compiler) return std::nullopt;
  return CompileKey{*source, *compiler};
}

Hash128 hash_fields(const std::vector<KeyField>& fields) {
  std::string bytes;
  for (const KeyField& field : fields) {
    append_length_prefixed(bytes, field.name);
    append_length_prefixed(bytes, field.value);
  }
  return hash128(bytes);
}

std::string serialize(const Artifact& artifact) {
  std::string out(kMagic);
  append_u32(out, kArtifactFormatVersion);
  append_hash(out, artifact.key.source);
  append_hash(out, artifact.key.compiler);
  append_length_prefixed(out, artifact.kind);
  append_length_prefixed(out, artifact.metadata);
  append_fields(out, artifact.source_fields);
  append_fields(out, artifact.compiler_fields);
  append_u64(out, artifact.image.size());
  append_length_prefixed(out, compress(artifact.image));
  append_hash(out, hash128(out));
  return out;
}

absl::StatusOr<Artifact> parse_artifact(std::string_view bytes) {
  KILN_ASSIGN_OR_RETURN(const std::string_view body, checked_body(bytes));
  Reader reader(body);
  const std::uint32_t version = reader.u32();
  if (version != kArtifactFormatVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "artifact: format version must be %d, got %d", kArtifactFormatVersion, version));
  }
  Artifact out;
  out.key.source = reader.hash();
  out.key.compiler = reader.hash();
  out.kind = std::string(reader.prefixed());
  out.metadata = std::string(reader.prefixed());
  out.source_fields = read_fields(reader);
  out.compiler_fields = read_fields(reader);
  const std::uint64_t image_bytes = reader.u64();
  const std::string_view payload = reader.prefixed();
  if (!reader.at_end()) {
    return absl::DataLossError(
        "artifact: its parts must fill the file exactly, got too few or too many bytes");
  }
  KILN_ASSIGN_OR_RETURN(out.image, decompress(payload, image_bytes));
  return out;
}

}  // namespace kiln::cache
