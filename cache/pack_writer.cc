#include "cache/bytes.h"
#include "cache/pack.h"
#include "cache/pack_layout.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using namespace pack_layout;
using Shared = std::shared_ptr<const Artifact>;

// Each content once, in the order in which it is first asked for.
class Blobs {
 public:
  std::uint32_t id(std::string_view bytes) {
    std::string digest = digest_of(bytes);
    const auto [row, added] = ids_.try_emplace(digest, static_cast<std::uint32_t>(ids_.size()));
    if (!added) return row->second;
    append_u64(table, data.size());
    append_u64(table, bytes.size());
    append_hash(table, hash128(bytes));
    table += digest;
    data += bytes;
    return row->second;
  }
  std::uint32_t id(const std::vector<KeyField>& fields) {
    std::string list;
    for (const KeyField& field : fields) {
      append_u32(list, id(field.name));
      append_u32(list, id(field.value));
    }
    return id(list);
  }
  std::size_t size() const { return ids_.size(); }

  std::string table, data;

 private:
  absl::flat_hash_map<std::string, std::uint32_t> ids_;
};

bool same(const Artifact& a, const Artifact& b) {
  return a.key == b.key && a.source_fields == b.source_fields &&
         a.compiler_fields == b.compiler_fields && a.kind == b.kind && a.metadata == b.metadata &&
         a.image == b.image;
}

bool compiler_less(const Artifact& a, const Artifact& b) {
  return std::lexicographical_compare(
      a.compiler_fields.begin(), a.compiler_fields.end(), b.compiler_fields.begin(),
      b.compiler_fields.end(), [](const KeyField& x, const KeyField& y) {
        return std::pair(x.name, x.value) < std::pair(y.name, y.value);
      });
}

absl::Status sort_and_check(std::vector<Shared>& artifacts) {
  std::sort(artifacts.begin(), artifacts.end(),
            [](const Shared& a, const Shared& b) { return a->key < b->key; });
  for (std::size_t i = 1; i < artifacts.size(); ++i) {
    if (artifacts[i]->key == artifacts[i - 1]->key && !same(*artifacts[i], *artifacts[i - 1])) {
      return absl::InvalidArgumentError(
          absl::StrFormat("pack: one key must name one artifact, got two that differ under %s",
                          to_hex(artifacts[i]->key)));
    }
  }
  artifacts.erase(std::unique(artifacts.begin(), artifacts.end(),
                              [](const Shared& a, const Shared& b) { return a->key == b->key; }),
                  artifacts.end());
  if (artifacts.size() > kMaxArtifacts) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "pack: must hold at most %d artifacts, got %d", kMaxArtifacts, artifacts.size()));
  }
  return absl::OkStatus();
}

std::string artifact_table(const std::vector<Shared>& artifacts, Blobs& blobs) {
  std::string table;
  for (std::size_t i = 0; i < artifacts.size(); ++i) {
    const Artifact& artifact = *artifacts[i];
    bool preferred = true;
    for (std::size_t j = i; j-- > 0 && artifacts[j]->key.source == artifact.key.source;)
      preferred &= !compiler_less(artifact, *artifacts[j]);
    for (std::size_t j = i + 1;
         j < artifacts.size() && artifacts[j]->key.source == artifact.key.source; ++j)
      preferred &= compiler_less(*artifacts[j], artifact);
    append_hash(table, artifact.key.source);
    append_hash(table, artifact.key.compiler);
    append_u32(table, preferred ? kPreferred : 0);
    append_u32(table, blobs.id(artifact.kind));
    append_u32(table, blobs.id(artifact.metadata));
    append_u32(table, blobs.id(artifact.source_fields));
    append_u32(table, blobs.id(artifact.compiler_fields));
    append_u32(table, blobs.id(artifact.image));
  }
  return table;
}

}  // namespace

absl::StatusOr<std::string> make_pack(PackContents contents, const SigningKey* key) {
  if (absl::Status sorted = sort_and_check(contents.artifacts); !sorted.ok()) return sorted;
  std::sort(contents.tuning.begin(), contents.tuning.end());
  contents.tuning.erase(std::unique(contents.tuning.begin(), contents.tuning.end()),
                        contents.tuning.end());
  Blobs blobs;
  std::string tables = artifact_table(contents.artifacts, blobs);
  std::string tuning;
  for (const auto& [name, value] : contents.tuning) {
    append_u32(tuning, blobs.id(name));
    append_u32(tuning, blobs.id(value));
  }
  if (blobs.size() > kMaxBlobs) {
    return absl::InvalidArgumentError(
        absl::StrFormat("pack: must hold at most %d values, got %d", kMaxBlobs, blobs.size()));
  }
  tables += blobs.table;
  tables += tuning;
  append_hash(tables, hash128(tables));

  std::string out(kMagic);
  append_u32(out, kVersion);
  append_u32(out, key != nullptr ? kSigned : 0);
  append_u32(out, static_cast<std::uint32_t>(contents.artifacts.size()));
  append_u32(out, static_cast<std::uint32_t>(blobs.size()));
  append_u32(out, static_cast<std::uint32_t>(contents.tuning.size()));
  append_u32(out, 0);
  append_u64(out, blobs.data.size());
  append_hash(out, hash128(out));
  out += tables;
  const std::string message = key != nullptr ? signed_message(out) : "";
  out += blobs.data;
  if (key != nullptr) {
    const PublicKey who = public_key(*key);
    out.append(reinterpret_cast<const char*>(who.bytes.data()), who.bytes.size());
    out += sign(*key, message);
  }
  return out;
}

}  // namespace kiln::cache
