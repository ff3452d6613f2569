#ifndef KILN_BENCH_GPU_CUBLAS_LT_H_
#define KILN_BENCH_GPU_CUBLAS_LT_H_

#include <kiln/dtype.h>
#include <kiln/status.h>

#include "bench/gpu/cuda_session.h"

#include <cstdint>
#include <memory>
#include <string>

namespace kiln::bench {

// d[m,n] = a[m,k] b[n,k]^T, dense rows, accumulated in float32. Device memory of the caller's.
struct LtProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::float16;  // float16 or bfloat16
  CUdeviceptr a = 0, b = 0, d = 0;
};

// One matrix product by cuBLASLt, by the fastest of the algorithms that its heuristic proposes:
// each was timed by events, L2 flushed, when this was made. The thread of the session.
class LtProduct {
 public:
  virtual ~LtProduct() = default;
  virtual absl::Status call(CUstream stream) = 0;
  // How many algorithms were tried, and the library's version.
  virtual int tried() const = 0;
  virtual std::string version() const = 0;
};

// Opens the library at run time, as `library` or under its usual names; one that a framework has
// loaded into the process is found by its name. FailedPrecondition: there is none, or its header
// was not there when this was built. The product keeps `session`, which outlives it.
absl::StatusOr<std::unique_ptr<LtProduct>> make_lt_product(const CudaSession& session,
                                                           const LtProblem& problem,
                                                           CUstream stream,
                                                           const std::string& library);

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_CUBLAS_LT_H_
