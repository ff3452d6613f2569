#ifndef KILN_BENCH_GPU_WORKLOADS_H_
#define KILN_BENCH_GPU_WORKLOADS_H_

#include <kiln/kiln.h>

#include "runtime/call_json.h"

#include <string>
#include <vector>

namespace kiln::bench {

// A call that is timed: a line tagged "perf" of a family's problems.jsonl, which tests and tuning
// read too.
struct Workload {
  // "BatchNormFwdOp 4x256x784 float16 training +weight +bias": op, shapes of the inputs of two and
  // more dimensions, dtype, parameters that are true or whole numbers (and not 0.0), optional
  // inputs that are passed. No two in a family have the same one.
  std::string name;
  std::string family;
  int line = 0;
  internal::ParsedCall call;
  Roofline roofline;
};

// In the order of the families' names and lines. `family` empty: all. NotFound names those there
// are.
absl::StatusOr<std::vector<Workload>> perf_workloads(Runtime& runtime, const std::string& family);

// With the op's signature: {"name","family","line","op","params","inputs":[{"name","dtype",
// "shape"} or null],"outputs":[...],"bytes","flops"}; inputs and outputs in the signature's order.
absl::StatusOr<internal::Json> json_of(Runtime& runtime, const Workload& workload);

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_WORKLOADS_H_
