#ifndef KILN_KERNEL_SOURCES_GEMM_GEMM_H_
#define KILN_KERNEL_SOURCES_GEMM_GEMM_H_

#include <kiln/kernel.h>
#include <kiln/ops/gemm.h>

#include <vector>

namespace kiln {

// Products of any size and layout, element by element: the implementation below all others.
class GemmKernel final : public Kernel, public GemmFwdInterface {
 public:
  static constexpr auto supported_archs = archs(80, 86, 89, 90, 100, 120);
  static constexpr bool general = true;
  static Entry<GemmKernel> entry_for(const GemmCall& call) { return Entry<GemmKernel>(call.dtype); }
  explicit GemmKernel(DType dtype) : dtype_(dtype) {}

  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const Tensor& a, const Tensor& b,
                       const Tensor& d) const override;

 private:
  DType dtype_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GEMM_GEMM_H_
