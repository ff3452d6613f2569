#include <kiln/status.h>

#include "base/clock.h"
#include "cache/redis_connection.h"
#include "cache/remote_client.h"
#include "cache/remote_pool.h"

#include <absl/strings/str_format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

// Only the holder may lengthen or end a right.
constexpr std::string_view kExtend =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) "
    "else return 0 end";
constexpr std::string_view kRelease =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

std::string value_name(const std::string& name) { return "kiln:" + name; }
std::string right_name(const std::string& name) { return "kiln:lease:" + name; }

// Values under kiln:<64 hex digits>, rights under kiln:lease:<64 hex digits>.
class RedisClient final : public RemoteClient {
 public:
  RedisClient(const CurlFunctions& curl, RemoteAddress address, const RemoteOptions& options)
      : curl_(curl),
        address_(std::move(address)),
        options_(options),
        life_(std::to_string(absl::ToInt64Milliseconds(options.lease_life))) {}

  absl::Status check() override { return ask({{"PING"}}).status(); }

  absl::StatusOr<std::optional<std::string>> get(const std::string& name) override {
    const std::string key = value_name(name);
    KILN_ASSIGN_OR_RETURN(std::vector<RedisReply> replies, ask({{"GET", key}}));
    if (replies[0].type == REDIS_REPLY_NIL) return std::optional<std::string>();
    if (replies[0].text.size() > static_cast<std::size_t>(options_.max_bytes)) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a value must have at most %d bytes, got %d", options_.max_bytes,
                          replies[0].text.size()));
    }
    return std::optional<std::string>(std::move(replies[0].text));
  }

  absl::Status put(const std::string& name, std::string_view value) override {
    const std::string key = value_name(name);
    return ask({{"SET", key, value}}, 10).status();
  }

  bool has_rights() const override { return true; }

  absl::StatusOr<Claim> claim(const RemoteRight& right) override {
    const std::string key = value_name(right.name), lease = right_name(right.name);
    KILN_ASSIGN_OR_RETURN(const std::vector<RedisReply> replies,
                          ask({{"SET", lease, right.token, "NX", "PX", life_}, {"EXISTS", key}}));
    const bool mine = replies[0].type == REDIS_REPLY_STATUS;
    if (replies[1].integer == 0) return mine ? Claim::mine : Claim::held;
    if (mine) KILN_RETURN_IF_ERROR(release(right));
    return Claim::built;
  }

  absl::Status extend(const std::vector<RemoteRight>& rights) override {
    std::vector<std::string> names;
    names.reserve(rights.size());  // the commands point into it
    std::vector<RedisCommand> commands;
    for (const RemoteRight& right : rights) {
      names.push_back(right_name(right.name));
      commands.push_back({"EVAL", kExtend, "1", names.back(), right.token, life_});
    }
    return ask(commands).status();
  }

  absl::Status release(const RemoteRight& right) override {
    const std::string lease = right_name(right.name);
    return ask({{"EVAL", kRelease, "1", lease, right.token}}).status();
  }

 private:
  // The replies to `commands`, none of them an error. A connection that was idle may have been
  // closed by the store meanwhile: then a fresh one is tried.
  absl::StatusOr<std::vector<RedisReply>> ask(const std::vector<RedisCommand>& commands,
                                              int patience = 1) {
    const absl::Time deadline = steady_now() + options_.timeout * patience;
    std::optional<RedisConnection> connection = idle_.take();
    if (connection) {
      auto replies = exchange(*connection, commands, deadline);
      if (!absl::IsUnavailable(replies.status())) return finish(*std::move(connection), replies);
      idle_.clear();
    }
    const absl::Time connected = std::min(deadline, steady_now() + options_.timeout);
    KILN_ASSIGN_OR_RETURN(connection,
                          RedisConnection::open(curl_, address_, options_.ca_file, connected));
    auto replies = exchange(*connection, commands, deadline);
    return finish(*std::move(connection), replies);
  }

  absl::StatusOr<std::vector<RedisReply>> exchange(RedisConnection& connection,
                                                   const std::vector<RedisCommand>& commands,
                                                   absl::Time deadline) const {
    return connection.exchange(commands, static_cast<std::size_t>(options_.max_bytes) + 4096,
                               deadline);
  }

  absl::StatusOr<std::vector<RedisReply>> finish(RedisConnection connection,
                                                 absl::StatusOr<std::vector<RedisReply>>& replies) {
    if (!replies.ok()) return replies;
    idle_.give(std::move(connection));
    for (const RedisReply& reply : *replies) KILN_RETURN_IF_ERROR(status_of_reply(reply));
    return std::move(replies);
  }

  const CurlFunctions& curl_;
  const RemoteAddress address_;
  const RemoteOptions options_;
  const std::string life_;  // of a right, in milliseconds
  RemotePool<RedisConnection> idle_;
};

}  // namespace

std::unique_ptr<RemoteClient> make_redis_client(const CurlFunctions& curl, RemoteAddress address,
                                                const RemoteOptions& options) {
  return std::make_unique<RedisClient>(curl, std::move(address), options);
}

}  // namespace kiln::cache
