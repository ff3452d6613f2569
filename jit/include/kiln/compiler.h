#ifndef KILN_COMPILER_H_
#define KILN_COMPILER_H_

#include <kiln/export.h>
#include <kiln/shared_text.h>
#include <kiln/status.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

// Who compiles. All three are part of the compile key, together with the source key.
struct CompilerId {
  std::string name;  // "nvrtc", "g++"
  std::string
      build;  // tells two builds of one version apart: NVRTC's own version hides the patch level
  std::string headers;  // version of the toolkit's headers; empty where there are none
  bool operator==(const CompilerId&) const = default;
};

// What one kernel of an image uses. Fields are -1 where the compiler does not tell.
struct KernelInfo {
  std::string name;
  std::int64_t registers = -1;  // per thread
  std::int64_t static_smem_bytes = -1;
  std::int64_t spill_bytes = -1;  // stores and loads, per thread
  std::int64_t stack_bytes = -1;  // per thread
  bool operator==(const KernelInfo&) const = default;
};

// Everything that decides the binary, and nothing else: no path, no date, no environment.
struct CompileRequest {
  std::string source_name;
  SharedText source;
  std::vector<std::pair<std::string, SharedText>> headers;  // name, contents; sorted by name
  std::vector<std::string> defines;                         // "NAME=VALUE", in the program's order
  std::vector<std::string> options;
  std::vector<std::string> kernels;  // extern "C" names that must be in the image
  std::string target;                // "sm_90a", "x86-64-v3"
};

struct CompileResult {
  std::string kind;  // "cubin", "ptx", "host_object": how the image is loaded
  std::string image;
  std::vector<KernelInfo> kernels;  // one a requested kernel, in that order
  std::string log;                  // warnings
};

// Turns a request into an image. Thread-safe; `compile` may run for seconds. Equal requests to
// equal compilers give equal images, byte for byte.
class KILN_EXPORT Compiler {
 public:
  virtual ~Compiler() = default;
  // Errors: FailedPrecondition when the compiler cannot be found (which, where it was looked for,
  // what to install).
  // A compilation whose compiler has another id afterwards than before is done again.
  virtual absl::StatusOr<CompilerId> id() const = 0;
  // Errors: InvalidArgument with ErrorKind::compile_error and the compiler's log when the source is
  // at fault; FailedPrecondition as `id()`; ResourceExhausted, DeadlineExceeded.
  virtual absl::StatusOr<CompileResult> compile(const CompileRequest& request) const = 0;
  // A compilation is about to be asked for, most likely: what takes time and needs no request may
  // begin meanwhile. Does not wait for it, and cannot fail.
  virtual void prepare() const {}
  // Its images run in this very process: they are kept on this machine and come from no other.
  virtual bool makes_host_code() const { return false; }
};

}  // namespace kiln::inline v1

#endif  // KILN_COMPILER_H_
