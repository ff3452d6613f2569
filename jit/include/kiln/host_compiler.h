#ifndef KILN_HOST_COMPILER_H_
#define KILN_HOST_COMPILER_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include <chrono>
#include <memory>
#include <string>

namespace kiln::inline v1 {

struct HostCompilerOptions {
  std::string compiler =
      "c++";  // a path, or a name sought in search_path; GCC or Clang ($KILN_CXX)
  std::string search_path =
      "/usr/local/bin:/usr/bin:/bin";  // also the PATH that the compiler itself gets
  std::string temp_dir = "/tmp";       // a private folder is made in it and removed again
  std::chrono::milliseconds timeout =
      std::chrono::seconds(60);  // of one run; then it and its children are killed
};

// A compiler of host code: C++20 source becomes a shared object (kind "host_object") by one run of
// the system's compiler, started without a shell, in a folder of its own that holds the request's
// source and headers and nothing else, with an environment of its own (CPATH and the like do not
// reach it). The request's target is the value of -march ("x86-64-v3"); "native" is refused, since
// it names another thing on every machine. Optimised with -O3, and with contraction to fused
// multiply-adds and without errno from math functions; no other liberty with floating point. System
// headers are those of the machine, whose C library's version is in the id.
//
// Errors of `id` and `compile`: FailedPrecondition when the compiler is missing or cannot be run;
// DeadlineExceeded after `timeout`; ResourceExhausted when it was killed by a signal (as when
// memory is short).
KILN_EXPORT std::unique_ptr<Compiler> make_host_compiler(HostCompilerOptions options = {});

}  // namespace kiln::inline v1

#endif  // KILN_HOST_COMPILER_H_
