#ifndef KILN_JIT_CURRENT_FOLDER_H_
#define KILN_JIT_CURRENT_FOLDER_H_

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

namespace kiln::jit {

// Calls `body` where the current folder exists. NVRTC 13.0 reads beyond a buffer when getcwd fails
// (AddressSanitizer shows it), as it does after the folder was removed. Then `body` runs on a
// thread whose current folder is "/" and nobody else's; the process's own is not touched. Errors:
// FailedPrecondition when the folder is gone and the system allows no such thread (some sandboxes).
absl::Status with_current_folder(absl::FunctionRef<void()> body);

}  // namespace kiln::jit

#endif  // KILN_JIT_CURRENT_FOLDER_H_
