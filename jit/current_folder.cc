#include "jit/current_folder.h"

#include <absl/strings/str_format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits.h>
#include <sched.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace kiln::jit {

absl::Status with_current_folder(absl::FunctionRef<void()> body) {
  std::array<char, PATH_MAX> path{};
  if (getcwd(path.data(), path.size()) != nullptr) {
    body();
    return absl::OkStatus();
  }
  const int why = errno;
  int error = 0;
  try {
    // CLONE_FS: from here on the thread has a current folder of its own, also for the threads that
    // it starts.
    std::thread([&] {
      if (unshare(CLONE_FS) != 0 || chdir("/") != 0) {
        error = errno;
      } else {
        body();
      }
    }).join();
  } catch (const std::system_error& no_thread) {
    error = no_thread.code().value();
  }
  if (error == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("NVRTC: the current folder must exist: getcwd says %s, and a folder for the "
                      "compilation alone cannot be had: %s; "
                      "change to a folder that exists",
                      strerrordesc_np(why), strerrordesc_np(error)));
}

}  // namespace kiln::jit
