#include <kiln/status.h>

#include "cache/remote_client.h"
#include "cache/remote_pool.h"

#include <absl/strings/str_format.h>
#include <sodium.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::cache {
namespace {

// No artifact has this key: asking for it tells whether we are served at all.
const std::string kNoKey(64, '0');

// What a server sends, as far as there is room for it.
struct Body {
  std::string bytes;
  std::size_t limit = 0;
  bool is_too_long = false;
};

std::size_t write_body(char* data, std::size_t, std::size_t size, void* into) {
  Body& body = *static_cast<Body*>(into);
  if (size > body.limit - body.bytes.size()) {
    body.is_too_long = true;
    return 0;
  }
  body.bytes.append(data, size);
  return size;
}

// The headers of one request.
class Headers {
 public:
  explicit Headers(const CurlFunctions& curl) : curl_(curl) {}
  ~Headers() { curl_.curl_slist_free_all(list_); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void add(const std::string& line) {
    if (curl_slist* longer = curl_.curl_slist_append(list_, line.c_str())) list_ = longer;
  }
  curl_slist* list() const { return list_; }

 private:
  const CurlFunctions& curl_;
  curl_slist* list_ = nullptr;
};

std::string sha256_hex(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  char hex[2 * sizeof hash + 1];
  return sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
}

// Values under BASE/<64 hex digits>, by GET, HEAD and PUT. Redirections are not followed: they
// could lead credentials elsewhere.
class HttpClient final : public RemoteClient {
 public:
  HttpClient(const CurlFunctions& curl, RemoteAddress address, const RemoteOptions& options)
      : curl_(curl), address_(std::move(address)), options_(options) {}

  absl::Status check() override {
    KILN_ASSIGN_OR_RETURN(const Answer answer, ask(kNoKey, Method::head));
    return is_absent(answer.status) ? absl::OkStatus() : of_status(answer.status);
  }

  absl::StatusOr<std::optional<std::string>> get(const std::string& name) override {
    KILN_ASSIGN_OR_RETURN(Answer answer, ask(name, Method::get));
    if (is_absent(answer.status)) return std::optional<std::string>();
    KILN_RETURN_IF_ERROR(of_status(answer.status));
    // libcurl takes headers that end early for all of them.
    if (answer.body.empty() && !answer.states_length)
      return absl::UnavailableError("the store must send a value, got the end of the connection");
    return std::optional<std::string>(std::move(answer.body));
  }

  absl::Status put(const std::string& name, std::string_view value) override {
    KILN_ASSIGN_OR_RETURN(const Answer answer, ask(name, Method::put, value));
    return of_status(answer.status);
  }

 private:
  enum class Method { head, get, put };
  struct Answer {
    long status = 0;
    bool states_length = false;
    std::string body;
  };

  static bool is_absent(long status) { return status == 404 || status == 410; }

  absl::Status of_status(long status) const {
    if (status >= 200 && status < 300) return absl::OkStatus();
    const std::string message =
        absl::StrFormat("the store must answer with a status of 200 to 299, got %d", status);
    // S3 stores have 400 for a session that has ended and for another's region.
    if (status == 401 || status == 403 || status == 407 || (status == 400 && address_.is_signed()))
      return absl::PermissionDeniedError(message + "; see its credentials");
    if (status == 413) return absl::ResourceExhaustedError(message);
    return absl::UnavailableError(message);
  }

  template <class Value>
  void set(CURL* handle, CURLoption option, Value value) const {
    // One that an old libcurl does not know changes nothing that is relied on.
    curl_.curl_easy_setopt(handle, option, value);
  }

  absl::Status prepare(CURL* handle, const std::string& name, Method method) const {
    const absl::Duration limit = options_.timeout * (method == Method::put ? 10 : 1);
    set(handle, CURLOPT_URL, (address_.text() + "/" + name).c_str());
    set(handle, CURLOPT_NOSIGNAL, 1L);
    set(handle, CURLOPT_QUICK_EXIT, 1L);  // a time-out does not wait for a resolver
    set(handle, CURLOPT_CONNECTTIMEOUT_MS, absl::ToInt64Milliseconds(options_.timeout));
    set(handle, CURLOPT_TIMEOUT_MS, absl::ToInt64Milliseconds(limit));
    set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(handle, CURLOPT_USERAGENT, "kiln");
    set(handle, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(options_.max_bytes));
    if (!options_.ca_file.empty()) set(handle, CURLOPT_CAINFO, options_.ca_file.c_str());
    const bool has_token = !options_.token.empty() && !address_.is_signed();
    set(handle, CURLOPT_HTTPAUTH, static_cast<long>(has_token ? CURLAUTH_BEARER : CURLAUTH_BASIC));
    if (address_.is_signed()) {
      const std::string how = "aws:amz:" + address_.region + ":s3";
      // Without it libcurl would send the secret key itself, as a password.
      if (curl_.curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, how.c_str()) != CURLE_OK) {
        return absl::UnimplementedError(
            "libcurl must be able to sign requests (7.88 or newer does), got one that is not");
      }
    }
    if (has_token) {
      set(handle, CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
    } else if (!address_.user.empty()) {
      set(handle, CURLOPT_USERNAME, address_.user.c_str());
      set(handle, CURLOPT_PASSWORD, address_.password.c_str());
    }
    return absl::OkStatus();
  }

  void add_headers(Headers& headers, std::string_view value) const {
    headers.add("Content-Type: application/octet-stream");
    if (!address_.is_signed()) {
      headers.add("Expect:");  // no second round trip for a PUT
      return;
    }
    headers.add("x-amz-content-sha256: " + sha256_hex(value));
    if (!address_.session_token.empty())
      headers.add("x-amz-security-token: " + address_.session_token);
  }

  absl::StatusOr<Answer> ask(const std::string& name, Method method, std::string_view value = {}) {
    std::optional<CurlHandle> handle = idle_.take();
    if (!handle) handle = CurlHandle(curl_.curl_easy_init(), CurlCleanup{&curl_});
    CURL* const raw = handle->get();
    if (raw == nullptr) return absl::UnavailableError("libcurl must give a handle, got none");
    curl_.curl_easy_reset(raw);  // its connection stays
    KILN_RETURN_IF_ERROR(prepare(raw, name, method));
    Headers headers(curl_);
    add_headers(headers, value);
    set(raw, CURLOPT_HTTPHEADER, headers.list());
    Body body{.limit = static_cast<std::size_t>(options_.max_bytes)};
    set(raw, CURLOPT_WRITEFUNCTION, &write_body);
    set(raw, CURLOPT_WRITEDATA, &body);
    if (method == Method::head) set(raw, CURLOPT_NOBODY, 1L);
    if (method == Method::put) {
      set(raw, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(value.size()));
      set(raw, CURLOPT_POSTFIELDS, value.data());
      set(raw, CURLOPT_CUSTOMREQUEST, "PUT");
    }
    CURLcode code = CURLE_OK;
    {
      const NoSigpipe guard;
      code = curl_.curl_easy_perform(raw);
    }
    if (body.is_too_long || code == CURLE_FILESIZE_EXCEEDED) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a value must have at most %d bytes, got more", options_.max_bytes));
    }
    if (code != CURLE_OK) return of_code(code);
    Answer answer{.body = std::move(body.bytes)};
    curl_.curl_easy_getinfo(raw, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_off_t length = -1;
    curl_.curl_easy_getinfo(raw, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    answer.states_length = length >= 0;
    idle_.give(*std::move(handle));
    return answer;
  }

  // The words for the code alone: libcurl's longer message could repeat what is in a request.
  absl::Status of_code(CURLcode code) const {
    const std::string message = absl::StrFormat("the store must answer, got libcurl's error %d: %s",
                                                code, curl_.curl_easy_strerror(code));
    return code == CURLE_OPERATION_TIMEDOUT ? absl::DeadlineExceededError(message)
                                            : absl::UnavailableError(message);
  }

  const CurlFunctions& curl_;
  const RemoteAddress address_;
  const RemoteOptions options_;
  RemotePool<CurlHandle> idle_;
};

}  // namespace

std::unique_ptr<RemoteClient> make_http_client(const CurlFunctions& curl, RemoteAddress address,
                                               const RemoteOptions& options) {
  return std::make_unique<HttpClient>(curl, std::move(address), options);
}

}  // namespace kiln::cache
