#include "cache/remote_records.h"

#include <kiln/status.h>

#include "base/hash128.h"
#include "cache/remote_link.h"
#include "cache/remote_value.h"

#include <utility>

namespace kiln::cache {
namespace {

constexpr std::string_view kRecord = "tuning record";

std::string key_of(const std::string& name) {
  return to_hex(CompileKey{.source = hash128(name), .compiler = hash128(kRecord)});
}

}  // namespace

absl::Status RemoteRecords::trouble(const absl::Status& status) const {
  return strict_ && !absl::IsCancelled(status) ? annotate(status, link_->address())
                                               : absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> RemoteRecords::find(const std::string& name) {
  const std::optional<std::string> none;
  if (link_->in_child()) return none;
  const std::string key = key_of(name);
  const absl::StatusOr<std::optional<std::string>> value =
      link_->with_client([&](RemoteClient& client) { return client.get(key); });
  if (!value.ok()) {
    KILN_RETURN_IF_ERROR(trouble(value.status()));
    return none;
  }
  if (!*value) return none;
  const absl::StatusOr<std::string_view> text = unseal(kRecord, **value, trusted_);
  if (!text.ok()) {
    link_->note_damage(text.status());
    return none;
  }
  return std::optional<std::string>(*text);
}

absl::Status RemoteRecords::put(const std::string& name, std::string_view text) {
  const RemoteOptions& options = link_->options();
  if (options.read_only || link_->in_child()) return absl::OkStatus();
  const std::string value =
      seal(kRecord, text, options.signing_key ? &*options.signing_key : nullptr);
  if (static_cast<std::int64_t>(value.size()) > options.max_bytes) return absl::OkStatus();
  const std::string key = key_of(name);
  return trouble(link_->with_client([&](RemoteClient& client) { return client.put(key, value); }));
}

}  // namespace kiln::cache
