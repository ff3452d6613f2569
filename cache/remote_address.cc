#include "cache/remote_address.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace kiln::cache {
namespace {

constexpr std::string_view kS3 = "s3+", kRegion = "region=";

std::string part(const CurlFunctions& curl, CURLU* url, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl.curl_url_get(url, what, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string out = text;
  curl.curl_free(text);
  return out;
}

std::string default_port(std::string_view scheme) {
  return scheme == "http" ? "80" : scheme == "https" ? "443" : "6379";
}

// Nothing else may be in a host: what was a part of a badly quoted password must not be shown.
bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-_:[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_region(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The region that the query names, which is taken out of it, or else `given`, or S3's own default.
std::string take_region(std::string& query, const std::string& given) {
  std::string region = given;
  if (query.starts_with(kRegion)) {
    region = query.substr(kRegion.size());
    query.clear();
  }
  return region.empty() ? "us-east-1" : region;
}

// Options go before what the URL says; a signed store without either has those of AWS.
void add_credentials(const RemoteOptions& options, RemoteAddress& out) {
  if (!options.user.empty()) out.user = options.user;
  if (!options.password.empty()) out.password = options.password;
  if (!out.is_signed() || !out.user.empty()) return;
  out.user = options.aws.access_key;
  out.password = options.aws.secret_key;
  out.session_token = options.aws.session_token;
}

}  // namespace

absl::StatusOr<RemoteAddress> parse_remote_address(const CurlFunctions& curl,
                                                   const RemoteOptions& options) {
  const auto refused = [](std::string_view rule) {
    return absl::InvalidArgumentError("the remote cache's URL must " + std::string(rule) +
                                      ", got another (it is not shown: it may hold a password)");
  };
  const std::unique_ptr<CURLU, decltype(curl.curl_url_cleanup)> url(curl.curl_url(),
                                                                    curl.curl_url_cleanup);
  RemoteAddress out;
  const bool is_s3 = options.url.starts_with(kS3);
  const std::string plain = options.url.substr(is_s3 ? kS3.size() : 0);
  if (url == nullptr || curl.curl_url_set(url.get(), CURLUPART_URL, plain.c_str(),
                                          CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return refused("be scheme://[user:password@]host[:port][/path], with %-escapes");
  out.scheme = part(curl, url.get(), CURLUPART_SCHEME);
  if ((is_s3 || !out.is_redis()) && out.scheme != "http" && out.scheme != "https") {
    return refused("begin with redis://, rediss://, http://, https://, s3+http:// or s3+https://");
  }
  out.host = part(curl, url.get(), CURLUPART_HOST);
  if (!is_host(out.host)) return refused("name a host");
  out.port = part(curl, url.get(), CURLUPART_PORT);
  if (out.port.empty()) out.port = default_port(out.scheme);
  out.path = part(curl, url.get(), CURLUPART_PATH);
  while (!out.path.empty() && out.path.back() == '/') out.path.pop_back();
  if (out.is_redis() && !is_number(out.path.empty() ? out.path : out.path.substr(1)))
    return refused("have the number of a database as its path, or none");
  std::string query = part(curl, url.get(), CURLUPART_QUERY);
  if (is_s3) {
    out.region = take_region(query, options.aws.region);
    if (!is_region(out.region)) return refused("name a region of letters, digits and -");
  }
  if (!query.empty() || !part(curl, url.get(), CURLUPART_FRAGMENT).empty())
    return refused(is_s3 ? "end with its path or ?region=" : "end with its path");
  out.user = part(curl, url.get(), CURLUPART_USER, CURLU_URLDECODE);
  out.password = part(curl, url.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  add_credentials(options, out);
  if (out.is_signed() && (out.user.empty() || out.password.empty()))
    return refused("come with an access key and a secret key (AWS_ACCESS_KEY_ID, ...)");
  return out;
}

}  // namespace kiln::cache
