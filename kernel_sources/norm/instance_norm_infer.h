#ifndef KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_INFER_H_
#define KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_INFER_H_

#include "batch_norm_kernel.h"
#include "infer_map.h"

namespace kiln {

// Every call, by a map over all elements; the running statistics are rounded to the dtype first.
class InstanceNormInferKernel final : public InferMap, public InstanceNormInferFwdInterface {
 public:
  static constexpr bool general = true;
  static Entry<InstanceNormInferKernel> entry_for(const BatchNormCall& c) {
    return Entry<InstanceNormInferKernel>(c.dtype, access_width(c), c.eps);
  }
  InstanceNormInferKernel(DType dtype, int vec, double eps)
      : InferMap(dtype, dtype, true, vec, eps) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                       const Tensor& y) const override {
    return run(stream, x, running_mean, running_var, weight, bias, y);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_INFER_H_
