#include "cache/curl_functions.h"

#include <absl/strings/str_format.h>

#include <ctime>
#include <dlfcn.h>

namespace kiln::cache {
namespace {

absl::StatusOr<const CurlFunctions*> open_curl() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"}) {
    // Never unloaded: its TLS library has handlers for the end of the process.
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        "libcurl.so.4 must be installed for a remote cache (package libcurl4), got none");
  }
  static CurlFunctions functions;
#define KILN_CURL_FUNCTION(name)                                                       \
  functions.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name));       \
  if (functions.name == nullptr) {                                                     \
    return absl::FailedPreconditionError(                                              \
        absl::StrFormat("libcurl must have %s (7.80 or newer has), got none", #name)); \
  }
#include "cache/curl_functions.inc"
#undef KILN_CURL_FUNCTION
  if (const CURLcode code = functions.curl_global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK) {
    return absl::FailedPreconditionError(absl::StrFormat("libcurl must start, got error %d: %s",
                                                         code, functions.curl_easy_strerror(code)));
  }
  return &functions;
}

}  // namespace

absl::StatusOr<const CurlFunctions*> load_curl() {
  static const auto* const loaded = new absl::StatusOr<const CurlFunctions*>(open_curl());
  return *loaded;
}

NoSigpipe::NoSigpipe() {
  sigset_t pending, pipe;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

NoSigpipe::~NoSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{0, 0};
  // One that came meanwhile is ours.
  if (!was_pending_) sigtimedwait(&pipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace kiln::cache
