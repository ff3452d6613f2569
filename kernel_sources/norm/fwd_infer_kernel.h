#ifndef KILN_KERNEL_SOURCES_NORM_FWD_INFER_KERNEL_H_
#define KILN_KERNEL_SOURCES_NORM_FWD_INFER_KERNEL_H_

#include "batch_norm_kernel.h"
#include "infer_map.h"

namespace kiln {

// Every call, by a map over all elements.
class FwdInferKernel final : public InferMap, public BatchNormInferFwdInterface {
 public:
  static constexpr bool general = true;
  static Entry<FwdInferKernel> entry_for(const BatchNormCall& c) {
    return Entry<FwdInferKernel>(c.dtype, access_width(c), c.eps);
  }
  FwdInferKernel(DType dtype, int vec, double eps)
      : InferMap(dtype, DType::float32, false, vec, eps) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                       const Tensor& y) const override {
    return run(stream, x, running_mean, running_var, weight, bias, y);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FWD_INFER_KERNEL_H_
