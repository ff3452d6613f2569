#include "cache/remote_tier.h"

#include <kiln/status.h>

#include "cache/remote_value.h"

#include <absl/strings/str_format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

// The name under which the last written key of a source is kept.
std::string source_name(const Hash128& source) { return to_hex(CompileKey{source, Hash128()}); }

class RemoteTier final : public Tier {
 public:
  RemoteTier(std::shared_ptr<RemoteLink> link, const TrustedKeys& trusted, bool strict)
      : link_(std::move(link)), trusted_(trusted), strict_(strict) {}

  TierKind kind() const override { return TierKind::remote; }
  const TierCounters& counters() const override { return counters_; }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    if (!may_ask(wanted) || link_->is_missing(wanted.key)) return Shared();
    KILN_ASSIGN_OR_RETURN(std::optional<Artifact> found, load(wanted.key));
    if (!found || !same_request(*found, wanted)) return Shared();
    return with_fields_of(wanted, *std::move(found));
  }

  absl::StatusOr<Shared> find_by_source(const Artifact& wanted, bool named_only) override {
    const CompileKey source{wanted.key.source, Hash128()};
    if (named_only || !may_ask(wanted) || link_->is_missing(source)) return Shared();
    KILN_ASSIGN_OR_RETURN(const std::optional<std::string> name, get(source));
    if (!name) return Shared();
    const std::optional<CompileKey> key = parse_compile_key(*name);
    if (!key || key->source != wanted.key.source) {
      note_damage(absl::DataLossError("the name of a key must be 64 hex digits, got others"));
      return Shared();
    }
    KILN_ASSIGN_OR_RETURN(std::optional<Artifact> found, load(*key));
    if (!found || !same_source(*found, wanted)) return Shared();
    return std::make_shared<const Artifact>(*std::move(found));
  }

  bool may_have_source(const Artifact& wanted) override { return may_ask(wanted); }

  absl::Status put(const Shared& artifact) override {
    if (link_->options().read_only || artifact->kind == kHostObject || link_->in_child())
      return absl::OkStatus();
    const std::optional<SigningKey>& key = link_->options().signing_key;
    const std::string value = make_remote_value(*artifact, key ? &*key : nullptr);
    if (static_cast<std::int64_t>(value.size()) > link_->options().max_bytes)
      return absl::OkStatus();
    const CompileKey source{artifact->key.source, Hash128()};
    const std::string name = to_hex(artifact->key);
    absl::Status written = link_->with_client([&](RemoteClient& client) -> absl::Status {
      KILN_RETURN_IF_ERROR(client.put(name, value));
      return client.put(source_name(artifact->key.source), name);
    });
    if (!written.ok()) return trouble(written);
    link_->forget_missing(artifact->key);
    link_->forget_missing(source);
    ++link_->stored;
    ++counters_.stored;
    counters_.bytes_written += static_cast<std::int64_t>(value.size());
    return absl::OkStatus();
  }

 private:
  bool may_ask(const Artifact& wanted) const {
    return wanted.kind != kHostObject && !link_->in_child();
  }

  // Trouble was counted and warned of. Being left alone is none.
  absl::Status trouble(const absl::Status& status) const {
    return strict_ && !absl::IsCancelled(status) ? annotate(status, link_->address())
                                                 : absl::OkStatus();
  }

  void note_damage(const absl::Status& why) {
    ++counters_.quarantined;
    link_->note_damage(why);
  }

  absl::StatusOr<std::optional<std::string>> get(const CompileKey& key) {
    const std::string name = to_hex(key);
    absl::StatusOr<std::optional<std::string>> value =
        link_->with_client([&](RemoteClient& client) { return client.get(name); });
    if (absl::IsResourceExhausted(value.status())) {
      note_damage(value.status());
      return std::optional<std::string>();
    }
    if (!value.ok()) {
      KILN_RETURN_IF_ERROR(trouble(value.status()));
      return std::optional<std::string>();
    }
    if (!*value) {
      ++link_->misses;
      link_->remember_missing(key);
    } else {
      counters_.bytes_read += static_cast<std::int64_t>((*value)->size());
    }
    return value;
  }

  absl::StatusOr<std::optional<Artifact>> load(const CompileKey& key) {
    KILN_ASSIGN_OR_RETURN(const std::optional<std::string> value, get(key));
    if (!value) return std::optional<Artifact>();
    absl::StatusOr<Artifact> artifact = read_remote_value(*value, trusted_);
    if (artifact.ok() && artifact->key != key) {
      artifact = absl::DataLossError(absl::StrFormat("value: its key must be its name %s, got %s",
                                                     to_hex(key), to_hex(artifact->key)));
    }
    if (artifact.ok() && artifact->kind == kHostObject)
      artifact = absl::PermissionDeniedError("value: host objects are never taken, got one");
    if (!artifact.ok()) {
      note_damage(artifact.status());
      return std::optional<Artifact>();
    }
    return std::optional<Artifact>(*std::move(artifact));
  }

  const std::shared_ptr<RemoteLink> link_;
  const TrustedKeys trusted_;
  const bool strict_;
  TierCounters counters_;
};

}  // namespace

std::unique_ptr<Tier> make_remote_tier(std::shared_ptr<RemoteLink> link, const TrustedKeys& trusted,
                                       bool strict) {
  return std::make_unique<RemoteTier>(std::move(link), trusted, strict);
}

}  // namespace kiln::cache
