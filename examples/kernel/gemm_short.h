#ifndef KILN_EXAMPLES_KERNEL_GEMM_SHORT_H_
#define KILN_EXAMPLES_KERNEL_GEMM_SHORT_H_

#include <kiln/kernel.h>
#include <kiln/ops/gemm.h>

#include <vector>

namespace kiln {

// Products over fewer than 8 elements: a thread an element of d.
class GemmShortKernel final : public Kernel, public GemmFwdInterface {
 public:
  static constexpr auto supported_archs = archs(80, 86, 89, 90, 100, 120);
  static Refusal refusal(const GemmCall& call) {
    if (call.k >= 8) return refuse("serves k below 8, got ", call.k);
    if (call.trans_a || !call.trans_b) return refuse("serves a as [m, k] and b as [n, k] only");
    return serves;
  }
  static Entry<GemmShortKernel> entry_for(const GemmCall& call) {
    return Entry<GemmShortKernel>(call.dtype, call.k);
  }
  GemmShortKernel(DType dtype, std::int64_t k) : dtype_(dtype), k_(k) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const Tensor& a, const Tensor& b,
                       const Tensor& d) const override;

 private:
  const DType dtype_;
  const std::int64_t k_;
};

}  // namespace kiln

#endif  // KILN_EXAMPLES_KERNEL_GEMM_SHORT_H_
