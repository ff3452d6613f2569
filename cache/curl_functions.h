#ifndef KILN_CACHE_CURL_FUNCTIONS_H_
#define KILN_CACHE_CURL_FUNCTIONS_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <curl/curl.h>

#include <csignal>
#include <memory>

namespace kiln::cache {

// libcurl, opened at run time. Linked, it would bring thirty libraries and 25 ms to the start of
// every process; this way only those with a remote cache pay, and a machine without it works on.
struct CurlFunctions {
#define KILN_CURL_FUNCTION(name) decltype(&::name) name = nullptr;
#include "cache/curl_functions.inc"
#undef KILN_CURL_FUNCTION
};

// Opened once a process and never closed. FailedPrecondition: there is none, or it lacks a
// function.
absl::StatusOr<const CurlFunctions*> load_curl();

struct CurlCleanup {
  const CurlFunctions* curl;
  void operator()(CURL* handle) const { curl->curl_easy_cleanup(handle); }
};
using CurlHandle = std::unique_ptr<CURL, CurlCleanup>;

// Keeps a broken connection from killing the process: while one lives, its thread gets no SIGPIPE.
class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_ = {};
  bool was_pending_ = false;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_CURL_FUNCTIONS_H_
