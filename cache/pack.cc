#include "cache/pack.h"

#include <kiln/status.h>

#include "cache/bytes.h"
#include "cache/pack_layout.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using namespace pack_layout;
using Shared = std::shared_ptr<const Artifact>;

// From here on remembering is cheaper than comparing.
constexpr std::size_t kLongText = 1024;
// Larger packs are read as they are asked: who looks for a few artifacts should not wait for all.
constexpr std::size_t kMaxReadAhead = 64 << 20;

absl::Status damaged(std::string_view what) {
  return absl::DataLossError(absl::StrFormat("pack: %s", what));
}

CompileKey key_at(std::string_view artifacts, std::size_t index) {
  Reader reader(artifacts.substr(index * kArtifactBytes, 32));
  const Hash128 source = reader.hash();
  return {source, reader.hash()};
}

}  // namespace

struct Pack::Row {
  CompileKey key;
  std::uint32_t flags = 0, kind = 0, metadata = 0, source_fields = 0, compiler_fields = 0,
                image = 0;
};

absl::StatusOr<std::unique_ptr<Pack>> Pack::open(Mapping mapping, const TrustedKeys& trusted) {
  std::unique_ptr<Pack> pack(new Pack);
  pack->mapping_ = std::move(mapping);
  pack->bytes_ = pack->mapping_.bytes();
  KILN_RETURN_IF_ERROR(pack->read_head(trusted));
  return pack;
}

absl::StatusOr<std::unique_ptr<Pack>> Pack::open(std::string_view bytes,
                                                 const TrustedKeys& trusted) {
  std::unique_ptr<Pack> pack(new Pack);
  pack->bytes_ = bytes;
  KILN_RETURN_IF_ERROR(pack->read_head(trusted));
  return pack;
}

absl::Status Pack::read_head(const TrustedKeys& trusted) {
  Reader reader(bytes_);
  if (reader.bytes(kMagic.size()) != kMagic) {
    return damaged(absl::StrFormat("must begin as a pack does, got %d other bytes", bytes_.size()));
  }
  const std::uint32_t version = reader.u32();
  const std::uint32_t flags = reader.u32();
  artifact_count_ = reader.u32();
  blob_count_ = reader.u32();
  tuning_count_ = reader.u32();
  reader.u32();
  const std::uint64_t data_size = reader.u64();
  if (reader.ok() && version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("pack: format version must be %d, got %d", kVersion, version));
  }
  const Hash128 head_check = reader.hash();
  if (!reader.ok() || head_check != hash128(bytes_.substr(0, kHeadBytes - 16)))
    return damaged("the head's checksum must be right, got another");
  if (artifact_count_ > kMaxArtifacts || blob_count_ > kMaxBlobs || tuning_count_ > kMaxBlobs)
    return damaged("must have fewer rows, got a count beyond what is written");
  artifacts_ = reader.bytes(artifact_count_ * kArtifactBytes);
  blobs_ = reader.bytes(blob_count_ * kBlobBytes);
  tuning_ = reader.bytes(tuning_count_ * kTuningBytes);
  const Hash128 tables_check = reader.hash();
  data_ = reader.bytes(data_size);
  const std::string_view trailer = reader.bytes((flags & kSigned) != 0 ? kTrailerBytes : 0);
  if (!reader.at_end())
    return damaged(
        absl::StrFormat("its parts must fill the file exactly, got %d bytes", bytes_.size()));
  const std::size_t tables = artifacts_.size() + blobs_.size() + tuning_.size();
  if (tables_check != hash128(bytes_.substr(kHeadBytes, tables)))
    return damaged("the tables' checksum must be right, got another");
  KILN_RETURN_IF_ERROR(check_signature(trusted, trailer));
  return check_tables();
}

absl::Status Pack::check_signature(const TrustedKeys& trusted, std::string_view trailer) {
  if (!trusted.required) return absl::OkStatus();
  if (trailer.empty()) {
    return absl::PermissionDeniedError(
        "pack: must be signed by a trusted key, got none; it is not used");
  }
  PublicKey who;
  std::copy_n(trailer.begin(), who.bytes.size(), who.bytes.begin());
  if (std::find(trusted.keys.begin(), trusted.keys.end(), who) == trusted.keys.end()) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "pack: must be signed by a trusted key, got one by %s; it is not used", to_hex(who)));
  }
  const std::size_t covered = kHeadBytes + artifacts_.size() + blobs_.size() + tuning_.size() + 16;
  if (!is_signed_by(who, signed_message(bytes_.substr(0, covered)),
                    trailer.substr(who.bytes.size()))) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "pack: the signature by %s must be right, got a wrong one; it is not used", to_hex(who)));
  }
  signed_ = true;
  return absl::OkStatus();
}

// After this every number of a table may be used without another look.
absl::Status Pack::check_tables() const {
  for (std::size_t i = 0; i < blob_count_; ++i) {
    Reader reader(blobs_.substr(i * kBlobBytes, kBlobBytes));
    const std::uint64_t offset = reader.u64();
    const std::uint64_t size = reader.u64();
    if (offset > data_.size() || size > data_.size() - offset)
      return damaged(
          absl::StrFormat("value %d must lie in the data, got bytes %d + %d", i, offset, size));
  }
  for (std::size_t i = 0; i < artifact_count_; ++i) {
    const Row r = row(i);
    for (const std::uint32_t id :
         {r.kind, r.metadata, r.source_fields, r.compiler_fields, r.image}) {
      if (id >= blob_count_)
        return damaged(absl::StrFormat("artifact %d must name a value, got %d", i, id));
    }
    if (i > 0 && !(key(i - 1) < r.key)) return damaged("keys must be in order, got others");
  }
  Reader reader(tuning_);
  for (std::size_t i = 0; i < 2 * tuning_count_; ++i) {
    if (reader.u32() >= blob_count_)
      return damaged("a tuning record must name a value, got another");
  }
  return absl::OkStatus();
}

Pack::Row Pack::row(std::size_t index) const {
  Reader reader(artifacts_.substr(index * kArtifactBytes, kArtifactBytes));
  Row out;
  out.key.source = reader.hash();
  out.key.compiler = reader.hash();
  for (std::uint32_t* field :
       {&out.flags, &out.kind, &out.metadata, &out.source_fields, &out.compiler_fields, &out.image})
    *field = reader.u32();
  return out;
}

CompileKey Pack::key(std::size_t index) const { return key_at(artifacts_, index); }
bool Pack::is_preferred(std::size_t index) const { return (row(index).flags & kPreferred) != 0; }
std::int64_t Pack::image_bytes(std::size_t index) const {
  return static_cast<std::int64_t>(raw_blob(row(index).image).size());
}

std::string_view Pack::raw_blob(std::uint32_t id) const {
  Reader reader(blobs_.substr(id * kBlobBytes, kBlobBytes));
  const std::uint64_t offset = reader.u64();
  return data_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(reader.u64()));
}

absl::StatusOr<std::string_view> Pack::blob(std::uint32_t id) const {
  const std::string_view bytes = raw_blob(id);
  Reader reader(blobs_.substr(id * kBlobBytes + 16, kBlobBytes - 16));
  if (reader.hash() != hash128(bytes))
    return damaged(absl::StrFormat("value %d must have its checksum, got damaged bytes", id));
  // A checksum finds damage. Where signatures count, only what the signed digest says is believed.
  if (signed_ && reader.bytes(kDigestBytes) != digest_of(bytes)) {
    return absl::PermissionDeniedError(
        absl::StrFormat("pack: value %d must be what was signed, got other bytes", id));
  }
  return bytes;
}

absl::StatusOr<std::vector<KeyField>> Pack::fields(std::uint32_t id) const {
  KILN_ASSIGN_OR_RETURN(const std::string_view list, blob(id));
  std::vector<KeyField> out;
  Reader reader(list);
  while (!reader.at_end()) {
    const std::uint32_t name = reader.u32();
    const std::uint32_t value = reader.u32();
    if (!reader.ok() || name >= blob_count_ || value >= blob_count_)
      return damaged("a field must name its values, got others");
    KILN_ASSIGN_OR_RETURN(const std::string_view name_bytes, blob(name));
    KILN_ASSIGN_OR_RETURN(const std::string_view value_bytes, blob(value));
    out.push_back({std::string(name_bytes), std::string(value_bytes)});
  }
  return out;
}

// Compares with the bytes themselves: stronger than any checksum of them, and nothing is copied.
bool Pack::same_fields(std::uint32_t id, const std::vector<KeyField>& fields) const {
  Reader reader(raw_blob(id));
  for (const KeyField& field : fields) {
    const std::uint32_t name = reader.u32();
    const std::uint32_t value = reader.u32();
    if (!reader.ok() || name >= blob_count_ || value >= blob_count_) return false;
    if (raw_blob(name) != field.name || !same_text(value, field.value)) return false;
  }
  return reader.at_end();
}

bool Pack::same_text(std::uint32_t id, const SharedText& text) const {
  if (text.size() < kLongText) return raw_blob(id) == text;
  {
    MutexLock lock(mutex_);
    const auto known = equal_texts_.find(id);
    if (known != equal_texts_.end() && known->second == text) return true;
  }
  if (raw_blob(id) != text) return false;
  MutexLock lock(mutex_);
  equal_texts_.insert_or_assign(id, text);
  return true;
}

// Not when it is opened: many a process opens packs and asks them for nothing.
void Pack::read_ahead() const {
  if (bytes_.size() <= kMaxReadAhead)
    std::call_once(read_ahead_, [this] { mapping_.read_ahead(); });
}

std::size_t Pack::lower_bound(const CompileKey& key) const {
  std::size_t first = 0;
  for (std::size_t count = artifact_count_; count > 0;) {
    const std::size_t half = count / 2;
    if (key_at(artifacts_, first + half) < key) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

absl::StatusOr<Shared> Pack::load(const Row& row, const Artifact& wanted,
                                  bool same_compiler) const {
  auto out = std::make_shared<Artifact>();
  out->key = row.key;
  out->source_fields = wanted.source_fields;
  if (same_compiler) {
    out->compiler_fields = wanted.compiler_fields;
  } else {
    KILN_ASSIGN_OR_RETURN(out->compiler_fields, fields(row.compiler_fields));
  }
  KILN_ASSIGN_OR_RETURN(const std::string_view kind, blob(row.kind));
  KILN_ASSIGN_OR_RETURN(const std::string_view metadata, blob(row.metadata));
  KILN_ASSIGN_OR_RETURN(const std::string_view image, blob(row.image));
  out->kind = kind;
  out->metadata = metadata;
  out->image = image;
  return Shared(std::move(out));
}

bool Pack::has_source(const Hash128& source) const {
  const std::size_t index = lower_bound({source, {}});
  return index < artifact_count_ && key(index).source == source;
}

absl::StatusOr<Shared> Pack::find(const Artifact& wanted) const {
  const std::size_t index = lower_bound(wanted.key);
  if (index == artifact_count_ || key(index) != wanted.key) return Shared();
  read_ahead();
  const Row found = row(index);
  if (!same_fields(found.source_fields, wanted.source_fields) ||
      !same_fields(found.compiler_fields, wanted.compiler_fields)) {
    // The key is their hash, so only chance makes others right: most likely these are damaged.
    KILN_RETURN_IF_ERROR(fields(found.source_fields).status());
    KILN_RETURN_IF_ERROR(fields(found.compiler_fields).status());
    return Shared();
  }
  return load(found, wanted, true);
}

absl::StatusOr<Shared> Pack::find_by_source(const Artifact& wanted) const {
  for (std::size_t i = lower_bound({wanted.key.source, {}}); i < artifact_count_; ++i) {
    const Row found = row(i);
    if (found.key.source != wanted.key.source) break;
    read_ahead();
    if ((found.flags & kPreferred) == 0) continue;
    if (!same_fields(found.source_fields, wanted.source_fields)) {
      KILN_RETURN_IF_ERROR(fields(found.source_fields).status());
      continue;
    }
    return load(found, wanted, false);
  }
  return Shared();
}

absl::StatusOr<Artifact> Pack::artifact(std::size_t index) const {
  const Row found = row(index);
  Artifact out;
  out.key = found.key;
  KILN_ASSIGN_OR_RETURN(out.source_fields, fields(found.source_fields));
  KILN_ASSIGN_OR_RETURN(out.compiler_fields, fields(found.compiler_fields));
  if (hash_fields(out.source_fields) != out.key.source ||
      hash_fields(out.compiler_fields) != out.key.compiler)
    return damaged(absl::StrFormat("the fields must make key %s, got others", to_hex(out.key)));
  KILN_ASSIGN_OR_RETURN(const std::string_view kind, blob(found.kind));
  KILN_ASSIGN_OR_RETURN(const std::string_view metadata, blob(found.metadata));
  KILN_ASSIGN_OR_RETURN(const std::string_view image, blob(found.image));
  out.kind = kind;
  out.metadata = metadata;
  out.image = image;
  return out;
}

absl::StatusOr<std::pair<std::string, std::string>> Pack::tuning(std::size_t index) const {
  Reader reader(tuning_.substr(index * kTuningBytes, kTuningBytes));
  KILN_ASSIGN_OR_RETURN(const std::string_view name, blob(reader.u32()));
  KILN_ASSIGN_OR_RETURN(const std::string_view value, blob(reader.u32()));
  return std::pair(std::string(name), std::string(value));
}

}  // namespace kiln::cache
