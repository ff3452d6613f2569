#ifndef KILN_OPS_GROUP_NORM_H_
#define KILN_OPS_GROUP_NORM_H_

#include <kiln/call_spec.h>
#include <kiln/op.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// The facts that choose and build a kernel of group normalization of x [B, C, *L].
struct GroupNormCall {
  std::int64_t batch = 1;     // B
  std::int64_t channels = 1;  // C
  std::int64_t spatial = 1;   // the product of L
  std::int64_t groups = 1;    // divides C
  double eps = 1e-5;
  bool has_weight = false;
  bool has_bias = false;
  DType dtype = DType::float16;  // of every tensor
  int align = 16;                // bytes, at most 16: divides the addresses of x and y
  KILN_CALL_SPEC(GroupNormCall, batch, channels, spatial, groups, eps, has_weight, has_bias, dtype,
                 align)

  std::int64_t per_group() const { return channels / groups * spatial; }
};

// Group normalization: for each of the C / groups neighbouring channels of a batch item together
//   y = (x - mean) / sqrt(var + eps) * weight + bias
// with mean and (biased) var over them and L, accumulated in float32, centred, and one rounding to
// the dtype at the end; weight and bias are those of the channel.
struct GroupNormFwdInterface : KernelInterface<GroupNormCall> {
  KILN_KERNEL_INTERFACE(GroupNormFwdInterface, forward)

  // Bytes of workspace that a call needs, whatever implementation serves it.
  KILN_EXPORT static std::size_t workspace_bytes(const GroupNormCall& call);

  // All tensors are contiguous in `call.dtype` on the stream's device; null data: not there. Only y
  // is written.
  //   x, y: [B, C, S]; y does not overlap x
  //   weight, bias: [C]
  //   workspace: `workspace_bytes(call)` bytes, aligned to 16
  // A NaN or infinity makes its own group NaN and no other.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const Tensor& y, void* workspace) const = 0;
};

// Group normalization of x [B, C, *L] in `num_groups` groups of channels.
//   x: float16, bfloat16 or float32
//   weight, bias: [C], x's dtype, optional
//   y: like x
class KILN_EXPORT GroupNormFwdOp final : public OpOf<GroupNormFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"group_norm_fwd", GroupNormFwdInterface>>;
  struct Params {
    std::int64_t num_groups = 1;  // divides C
    double eps = 1e-5;            // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<GroupNormFwdOp>> create(const Params& params,
                                                                const OpOptions& options = {});
  explicit GroupNormFwdOp(OpInit init);

  // weight and bias may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                       const Tensor* bias, const Tensor& y);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  std::int64_t groups_ = 1;
  double eps_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_GROUP_NORM_H_
