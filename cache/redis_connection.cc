#include "cache/redis_connection.h"

#include <kiln/status.h>

#include "base/clock.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <poll.h>
#include <utility>

namespace kiln::cache {
namespace {

// hiredis hands its values over to these. An array is none of our replies; refused, the lengths
// that it claims are never believed.
void* make_text(const redisReadTask* task, char* text, std::size_t size) {
  return new RedisReply{.type = task->type, .text = std::string(text, size)};
}
void* refuse_array(const redisReadTask*, int) { return nullptr; }
void* make_integer(const redisReadTask* task, long long value) {
  return new RedisReply{.type = task->type, .integer = value};
}
void* make_nil(const redisReadTask*) { return new RedisReply; }
void free_reply(void* reply) { delete static_cast<RedisReply*>(reply); }

redisReader* new_reader() {
  static redisReplyObjectFunctions functions = {make_text, refuse_array, make_integer, make_nil,
                                                free_reply};
  return ::redisReaderCreateWithFunctions(&functions);
}

absl::Status connecting(const CurlFunctions& curl, CURLcode code) {
  const std::string message = absl::StrFormat("the store must answer, got libcurl's error %d: %s",
                                              code, curl.curl_easy_strerror(code));
  return code == CURLE_OPERATION_TIMEDOUT ? absl::DeadlineExceededError(message)
                                          : absl::UnavailableError(message);
}

void append_command(std::string& out, const RedisCommand& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* text = nullptr;
  const int size =
      ::redisFormatCommandArgv(&text, static_cast<int>(words.size()), words.data(), sizes.data());
  if (size > 0) out.append(text, static_cast<std::size_t>(size));
  ::redisFreeCommand(text);
}

}  // namespace

absl::Status status_of_reply(const RedisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return absl::OkStatus();
  const std::size_t size = static_cast<std::size_t>(
      std::find_if_not(reply.text.begin(), reply.text.end(),
                       [](unsigned char c) { return std::isupper(c) != 0; }) -
      reply.text.begin());
  const std::string word = reply.text.substr(0, std::min<std::size_t>(size, 20));
  const std::string message = absl::StrFormat("the store must do what it is asked, got %s",
                                              word.empty() ? "an error" : word);
  if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM")
    return absl::PermissionDeniedError(message + "; see its credentials");
  return absl::UnavailableError(message);
}

RedisConnection::RedisConnection(const CurlFunctions& curl, CurlHandle handle)
    : curl_(&curl), handle_(std::move(handle)), reader_(new_reader()) {}

absl::StatusOr<RedisConnection> RedisConnection::open(const CurlFunctions& curl,
                                                      const RemoteAddress& address,
                                                      const std::string& ca_file,
                                                      absl::Time deadline) {
  RedisConnection out(curl, CurlHandle(curl.curl_easy_init(), CurlCleanup{&curl}));
  CURL* const handle = out.handle_.get();
  if (handle == nullptr || out.reader_ == nullptr)
    return absl::UnavailableError("memory for a connection must be there, got none");
  const auto set = [&](CURLoption option, auto value) {
    curl.curl_easy_setopt(handle, option, value);
  };
  const std::string url =
      (address.is_tls() ? "https://" : "http://") + address.host + ":" + address.port;
  // To libcurl it is a server it does not speak to: it connects, checks the certificate, and stops.
  set(CURLOPT_CONNECT_ONLY, 1L);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROXY, "");
  set(CURLOPT_SSL_ENABLE_ALPN, 0L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS,
      std::max<long>(1, absl::ToInt64Milliseconds(deadline - steady_now())));
  if (!ca_file.empty()) set(CURLOPT_CAINFO, ca_file.c_str());
  if (const CURLcode code = curl.curl_easy_perform(handle); code != CURLE_OK)
    return connecting(curl, code);
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl.curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket);
  if (socket == CURL_SOCKET_BAD)
    return absl::UnavailableError("the store must stay connected, got a closed connection");
  out.socket_ = socket;

  std::vector<RedisCommand> greeting;
  if (!address.user.empty()) {
    greeting.push_back({"AUTH", address.user, address.password});
  } else if (!address.password.empty()) {
    greeting.push_back({"AUTH", address.password});
  }
  if (address.path.size() > 1)
    greeting.push_back({"SELECT", std::string_view(address.path).substr(1)});
  if (greeting.empty()) return out;
  KILN_ASSIGN_OR_RETURN(const std::vector<RedisReply> replies,
                        out.exchange(greeting, 1024, deadline));
  for (const RedisReply& reply : replies) KILN_RETURN_IF_ERROR(status_of_reply(reply));
  return out;
}

absl::StatusOr<std::vector<RedisReply>> RedisConnection::exchange(
    const std::vector<RedisCommand>& commands, std::size_t max_bytes, absl::Time deadline) {
  const NoSigpipe guard;
  std::string bytes;
  for (const RedisCommand& command : commands) append_command(bytes, command);
  KILN_RETURN_IF_ERROR(send(bytes, deadline));
  std::vector<RedisReply> replies;
  while (replies.size() < commands.size()) {
    KILN_ASSIGN_OR_RETURN(RedisReply reply, receive(max_bytes, deadline));
    replies.push_back(std::move(reply));
  }
  return replies;
}

absl::Status RedisConnection::send(std::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    std::size_t sent = 0;
    const CURLcode code = curl_->curl_easy_send(handle_.get(), bytes.data(), bytes.size(), &sent);
    if (code != CURLE_OK && code != CURLE_AGAIN) return connecting(*curl_, code);
    bytes.remove_prefix(sent);
    if (code == CURLE_AGAIN) KILN_RETURN_IF_ERROR(wait(POLLOUT, deadline));
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisReply> RedisConnection::receive(std::size_t max_bytes, absl::Time deadline) {
  std::array<char, 16384> buffer;
  for (std::size_t received = 0;;) {
    void* reply = nullptr;
    if (::redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
      return absl::UnavailableError("the store must speak Redis' protocol, got something else");
    if (reply != nullptr) {
      const std::unique_ptr<RedisReply> owned(static_cast<RedisReply*>(reply));
      return *std::move(owned);
    }
    if (received > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a value must have at most %d bytes, got more", max_bytes));
    }
    std::size_t size = 0;
    const CURLcode code = curl_->curl_easy_recv(handle_.get(), buffer.data(), buffer.size(), &size);
    if (code == CURLE_AGAIN) {
      KILN_RETURN_IF_ERROR(wait(POLLIN, deadline));
      continue;
    }
    if (code != CURLE_OK) return connecting(*curl_, code);
    if (size == 0)
      return absl::UnavailableError("the store must answer, got the end of the connection");
    if (::redisReaderFeed(reader_.get(), buffer.data(), size) != REDIS_OK)
      return absl::UnavailableError("memory for a reply must be there, got none");
    received += size;
  }
}

absl::Status RedisConnection::wait(short events, absl::Time deadline) const {
  while (true) {
    const absl::Duration left = deadline - steady_now();
    if (left <= absl::ZeroDuration())
      return absl::DeadlineExceededError("the store must answer in time, got nothing");
    pollfd poll_socket{.fd = socket_, .events = events, .revents = 0};
    const auto milliseconds =
        static_cast<int>(std::clamp<std::int64_t>(absl::ToInt64Milliseconds(left) + 1, 1, 60000));
    const int ready = ::poll(&poll_socket, 1, milliseconds);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR)
      return absl::UnavailableError("the connection must be there, got none");
  }
}

}  // namespace kiln::cache
