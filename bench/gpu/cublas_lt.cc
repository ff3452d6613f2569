#include "bench/gpu/cublas_lt.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <dlfcn.h>
#define KILN_HAS_CUBLAS_LT 1
#endif

namespace kiln::bench {

#ifndef KILN_HAS_CUBLAS_LT

absl::StatusOr<std::unique_ptr<LtProduct>> make_lt_product(const CudaSession&, const LtProblem&,
                                                           CUstream, const std::string&) {
  return absl::FailedPreconditionError(
      "cublaslt: must have been built with the toolkit's cublasLt.h: it was not there");
}

#else

namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr int kMaxAlgorithms = 32;
constexpr int kTimings = 5;  // of each algorithm; the median counts

struct Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
};

absl::Status status_of(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("cublaslt: %s: status %d", what, static_cast<int>(status)));
}

absl::StatusOr<void*> open_library(const std::string& library) {
  std::vector<std::string> names = {library};
  if (library.empty()) {
    const int major = CUDA_VERSION / 1000;
    names = {absl::StrFormat("libcublasLt.so.%d", major), "libcublasLt.so",
             absl::StrFormat("libcublasLt.so.%d", major - 1)};
  }
  std::string why;
  for (const std::string& name : names) {
    if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW)) return handle;
    if (why.empty()) why = ::dlerror();
  }
  return absl::FailedPreconditionError("cublaslt: the library must be there: " + why);
}

template <class F>
absl::Status find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("cublaslt: the library must have %s: it has not", name));
}

absl::StatusOr<Functions> open_functions(const std::string& library) {
  KILN_ASSIGN_OR_RETURN(void* const handle, open_library(library));
  Functions f{};
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtCreate", f.create));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtGetVersion", f.version));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmulDescCreate", f.desc_create));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmulDescSetAttribute", f.desc_set));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatrixLayoutCreate", f.layout_create));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmulPreferenceCreate", f.preference_create));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmulPreferenceSetAttribute", f.preference_set));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmulAlgoGetHeuristic", f.heuristic));
  KILN_RETURN_IF_ERROR(find(handle, "cublasLtMatmul", f.matmul));
  return f;
}

// Descriptors are left to the end of the process, as the library is; the workspace is not.
class Product final : public LtProduct {
 public:
  Product(const CudaSession& session, const Functions& functions, const LtProblem& problem)
      : session_(session), f_(functions), problem_(problem) {}
  ~Product() override {
    if (workspace_ != 0) (void)session_.free(workspace_);
  }

  absl::Status make(CUstream stream) {
    KILN_RETURN_IF_ERROR(describe());
    KILN_ASSIGN_OR_RETURN(workspace_, session_.allocate(kWorkspace));
    cublasLtMatmulPreference_t preference = nullptr;
    KILN_RETURN_IF_ERROR(status_of(f_.preference_create(&preference), "preference"));
    KILN_RETURN_IF_ERROR(
        status_of(f_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                    &kWorkspace, sizeof kWorkspace),
                  "workspace size"));
    std::array<cublasLtMatmulHeuristicResult_t, kMaxAlgorithms> found{};
    int count = 0;
    KILN_RETURN_IF_ERROR(status_of(f_.heuristic(handle_, desc_, b_, a_, d_, d_, preference,
                                                kMaxAlgorithms, found.data(), &count),
                                   "heuristic"));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < count; ++i) {
      if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
      const auto us = time_of(found[i].algo, stream);
      if (!us.ok()) continue;
      ++tried_;
      if (*us >= best) continue;
      best = *us;
      algorithm_ = found[i].algo;
    }
    if (tried_ > 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrFormat("cublaslt: one of %d proposed algorithms must run: none does", count));
  }

  absl::Status call(CUstream stream) override { return run(algorithm_, stream); }
  int tried() const override { return tried_; }
  std::string version() const override {
    const std::size_t v = f_.version();
    return absl::StrFormat("%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
  }

 private:
  // The library's matrices have dense columns: d^T[n,m] = b . a^T, where b is transposed.
  absl::Status describe() {
    const cudaDataType_t type = problem_.dtype == DType::bfloat16 ? CUDA_R_16BF : CUDA_R_16F;
    const auto m = static_cast<std::uint64_t>(problem_.m),
               n = static_cast<std::uint64_t>(problem_.n),
               k = static_cast<std::uint64_t>(problem_.k);
    KILN_RETURN_IF_ERROR(status_of(f_.create(&handle_), "create"));
    KILN_RETURN_IF_ERROR(
        status_of(f_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "description"));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    KILN_RETURN_IF_ERROR(
        status_of(f_.desc_set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
                  "transposition"));
    KILN_RETURN_IF_ERROR(status_of(f_.layout_create(&b_, type, k, n, problem_.k), "layout of b"));
    KILN_RETURN_IF_ERROR(status_of(f_.layout_create(&a_, type, k, m, problem_.k), "layout of a"));
    return status_of(f_.layout_create(&d_, type, n, m, problem_.n), "layout of d");
  }

  absl::Status run(const cublasLtMatmulAlgo_t& algorithm, CUstream stream) {
    const float one = 1, zero = 0;
    const auto at = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };  // NOLINT
    return status_of(f_.matmul(handle_, desc_, &one, at(problem_.b), b_, at(problem_.a), a_, &zero,
                               at(problem_.d), d_, at(problem_.d), d_, &algorithm, at(workspace_),
                               kWorkspace, stream),
                     "matmul");
  }

  absl::StatusOr<double> time_of(const cublasLtMatmulAlgo_t& algorithm, CUstream stream) {
    KILN_RETURN_IF_ERROR(run(algorithm, stream));
    std::array<double, kTimings> us{};
    for (double& one : us) {
      KILN_RETURN_IF_ERROR(session_.flush_l2(stream));
      KILN_ASSIGN_OR_RETURN(one, session_.event_us(stream, [&] { return run(algorithm, stream); }));
    }
    std::sort(us.begin(), us.end());
    return us[kTimings / 2];
  }

  const CudaSession& session_;
  const Functions f_;
  const LtProblem problem_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  CUdeviceptr workspace_ = 0;
  int tried_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LtProduct>> make_lt_product(const CudaSession& session,
                                                           const LtProblem& problem,
                                                           CUstream stream,
                                                           const std::string& library) {
  if (problem.dtype != DType::float16 && problem.dtype != DType::bfloat16)
    return absl::InvalidArgumentError("cublaslt: dtype must be float16 or bfloat16: got " +
                                      std::string(to_string(problem.dtype)));
  KILN_ASSIGN_OR_RETURN(const Functions functions, open_functions(library));
  auto product = std::make_unique<Product>(session, functions, problem);
  KILN_RETURN_IF_ERROR(product->make(stream));
  return product;
}

#endif

}  // namespace kiln::bench
