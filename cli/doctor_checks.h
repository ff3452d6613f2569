#ifndef KILN_CLI_DOCTOR_CHECKS_H_
#define KILN_CLI_DOCTOR_CHECKS_H_

#include <kiln/options.h>
#include <kiln/runtime.h>

#include "base/mutex.h"

#include <string>
#include <vector>

// What `kiln doctor` looks at, one function each. They try the real thing: a kernel is compiled, a
// file is written.
namespace kiln::cli {

// One thing that Kiln needs or can use.
struct Check {
  std::string name;
  bool ok = false;
  std::string found;
  std::string advice;  // what to do; empty when nothing is
};

// Collects the library's warnings while it lives: they say why something is not used. Thread-safe.
class Warnings {
 public:
  Warnings();
  ~Warnings();
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  // Those since the last call; "; " between them.
  std::string take();

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

// Variables that nobody reads, and values that `complaints` were logged of.
Check check_environment(const std::string& complaints);
// NVRTC, and that it compiles, by a worker where it is to.
std::vector<Check> check_compiling(Runtime& runtime, Warnings& warnings);
// `complaints`: what was logged when the store was made.
std::vector<Check> check_cache(Runtime& runtime, const std::string& complaints);
// Empty where none is wanted; else asks it.
std::vector<Check> check_remote(Runtime& runtime);
std::vector<Check> check_recording(const RuntimeOptions& options);

}  // namespace kiln::cli

#endif  // KILN_CLI_DOCTOR_CHECKS_H_
