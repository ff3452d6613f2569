#ifndef KILN_KERNEL_SOURCES_GEMM_GEMM_VECTORIZED_H_
#define KILN_KERNEL_SOURCES_GEMM_GEMM_VECTORIZED_H_

#include <kiln/kernel.h>
#include <kiln/ops/gemm.h>

#include <vector>

namespace kiln {

// Products of matrices with dense rows, in vectors of 16 bytes along k.
class GemmVectorizedKernel final : public Kernel, public GemmFwdInterface {
 public:
  static constexpr auto supported_archs = archs(80, 86, 89, 90, 100, 120);
  static Refusal refusal(const GemmCall& call);
  static Entry<GemmVectorizedKernel> entry_for(const GemmCall& call) {
    return Entry<GemmVectorizedKernel>(call.dtype);
  }
  explicit GemmVectorizedKernel(DType dtype) : dtype_(dtype) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const Tensor& a, const Tensor& b,
                       const Tensor& d) const override;

 private:
  DType dtype_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GEMM_GEMM_VECTORIZED_H_
