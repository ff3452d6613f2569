#ifndef KILN_OPS_INSTANCE_NORM_H_
#define KILN_OPS_INSTANCE_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/batch_norm_call.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// Instance normalization by each instance's own statistics: for each channel of each batch item
//   y = (x - mean) / sqrt(var + eps) * weight + bias
// with mean and (biased) var over L, accumulated in float32, centred, and one rounding to the dtype
// at the end.
struct InstanceNormTrainFwdInterface : KernelInterface<BatchNormCall> {
  KILN_KERNEL_INTERFACE(InstanceNormTrainFwdInterface, forward)

  // Bytes of workspace that a call needs, whatever implementation serves it.
  KILN_EXPORT static std::size_t workspace_bytes(const BatchNormCall& call);

  // All tensors are contiguous on the stream's device; null data: not there.
  //   x, y: [B, C, S] in `call.dtype`; y does not overlap x
  //   running_mean, running_var: float32 [C], both where `call.tracks`, else none; written in
  //     place: moved by `call.momentum` towards the batch's mean of the instances' means, and of
  //     their unbiased variances
  //   weight, bias: [C] in `call.dtype`
  //   workspace: `workspace_bytes(call)` bytes, aligned to 16
  // A NaN or infinity makes its own instance NaN and no other.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                               const Tensor& y, void* workspace) const = 0;
};

// The same by given statistics, rounded to `call.dtype` before they are used, and only read.
struct InstanceNormInferFwdInterface : KernelInterface<BatchNormCall> {
  KILN_KERNEL_INTERFACE(InstanceNormInferFwdInterface, forward)

  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                               const Tensor& y) const = 0;
};

// Instance normalization of x [B, C, *L].
//   x: float16, bfloat16 or float32
//   running_mean, running_var: float32 [C], optional as a pair; needed without use_input_stats,
//   else written in place weight, bias: [C], x's dtype, optional y: like x
// Input statistics want more than one value an instance. An empty x leaves the running statistics
// alone.
class KILN_EXPORT InstanceNormFwdOp final : public OpOf<InstanceNormFwdOp> {
 public:
  using Interfaces =
      kiln::Interfaces<Named<"instance_norm_fwd_train", InstanceNormTrainFwdInterface>,
                       Named<"instance_norm_fwd_infer", InstanceNormInferFwdInterface>>;
  struct Params {
    bool use_input_stats = true;
    double momentum = 0.1;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<InstanceNormFwdOp>> create(const Params& params,
                                                                   const OpOptions& options = {});
  explicit InstanceNormFwdOp(OpInit init);

  // Optional tensors may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor* running_mean,
                       const Tensor* running_var, const Tensor* weight, const Tensor* bias,
                       const Tensor& y);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  bool use_input_stats_ = true;
  double momentum_ = 0;
  double eps_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_INSTANCE_NORM_H_
