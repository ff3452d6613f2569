#ifndef KILN_OPS_BATCH_NORM_H_
#define KILN_OPS_BATCH_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/batch_norm_call.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// Batch normalization by the batch's own statistics: for each channel c
//   y = (x - mean) / sqrt(var + eps) * weight + bias
// with mean and (biased) var over the batch and all of L, accumulated in float32, centred, and one
// rounding to the dtype at the end. Results do not change from run to run.
struct BatchNormTrainFwdInterface : KernelInterface<BatchNormCall> {
  KILN_KERNEL_INTERFACE(BatchNormTrainFwdInterface, forward)

  // Bytes of workspace that a call needs, whatever implementation serves it.
  KILN_EXPORT static std::size_t workspace_bytes(const BatchNormCall& call);

  // All tensors are contiguous on the stream's device; null data: not there.
  //   x, y: [B, C, S] in `call.dtype`; y does not overlap x
  //   running_mean, running_var: float32 [C], both or none; written in place:
  //     running = (1 - momentum) * running + momentum * (mean, var * n / (n - 1)), n = B * S
  //   weight, bias: float32 [C]
  //   mean, rstd: float32 [C], written: mean and 1 / sqrt(var + eps)
  //   workspace: `workspace_bytes(call)` bytes, aligned to 16
  // A NaN or infinity makes its own channel NaN and no other.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                               const Tensor& y, const Tensor& mean, const Tensor& rstd,
                               void* workspace) const = 0;
};

// The same by given statistics, which are only read.
struct BatchNormInferFwdInterface : KernelInterface<BatchNormCall> {
  KILN_KERNEL_INTERFACE(BatchNormInferFwdInterface, forward)

  // As above; running_mean and running_var are there. A running_var below -eps gives NaN.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                               const Tensor& y) const = 0;
};

// Batch normalization of x [B, C, *L].
//   x: float16, bfloat16 or float32
//   running_mean, running_var: float32 [C], optional as a pair; needed in inference, written in
//   place in training weight, bias: float32 [C], optional y: like x mean, rstd: float32 [C], the
//   statistics used, for the backward pass: only in training (else empty); may be null
// Training wants more than one value a channel. An empty x leaves the running statistics alone and
// makes mean and rstd NaN.
class KILN_EXPORT BatchNormFwdOp final : public OpOf<BatchNormFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"batch_norm_fwd_train", BatchNormTrainFwdInterface>,
                                      Named<"batch_norm_fwd_infer", BatchNormInferFwdInterface>>;
  struct Params {
    bool training = false;
    double momentum = 0.1;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<BatchNormFwdOp>> create(const Params& params,
                                                                const OpOptions& options = {});
  explicit BatchNormFwdOp(OpInit init);

  // Optional tensors may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor* running_mean,
                       const Tensor* running_var, const Tensor* weight, const Tensor* bias,
                       const Tensor& y, const Tensor* mean = nullptr, const Tensor* rstd = nullptr);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  bool training_ = false;
  double momentum_ = 0;
  double eps_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_BATCH_NORM_H_
