#ifndef KILN_OPS_GEMM_H_
#define KILN_OPS_GEMM_H_

#include <kiln/call_spec.h>
#include <kiln/op.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// The facts that choose and build a matrix product d[m, n] = a[m, k] . b[n, k]^T.
struct GemmCall {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::float16;  // of all three
  bool trans_a = false;          // a lies in memory as [k, m]
  bool trans_b = true;           // b lies in memory as [n, k]; false: as [k, n]
  int align = 16;  // bytes, at most 16: divides the addresses of all rows of a and b as they lie
  KILN_CALL_SPEC(GemmCall, m, n, k, dtype, trans_a, trans_b, align)
};

// d[i, j] = sum over k of a[i, k] * b[j, k], accumulated in float32 and rounded once.
struct GemmFwdInterface : KernelInterface<GemmCall> {
  KILN_KERNEL_INTERFACE(GemmFwdInterface, forward)

  // All tensors are of `call.dtype` on the stream's device.
  //   a: [m, k], b: [n, k], each dense along one of its dimensions, which trans_a and trans_b tell
  //   d: [m, n] contiguous; overlaps nothing else
  // Without k, d is 0. A NaN or infinity reaches only its row and column.
  virtual absl::Status forward(const Stream& stream, const Tensor& a, const Tensor& b,
                               const Tensor& d) const = 0;
};

// Matrix product with a transposed second factor, d = a . b^T.
//   a: [M, K], float16 or bfloat16; rows or columns dense, any distance between them
//   b: [N, K], a's dtype, likewise; a matrix that lies as [K, N] is passed as its transposed view,
//      with strides [1, N]
//   d: [M, N], a's dtype, contiguous
class KILN_EXPORT GemmFwdOp final : public OpOf<GemmFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"gemm", GemmFwdInterface>>;
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<GemmFwdOp>> create(const OpOptions& options = {});
  explicit GemmFwdOp(OpInit init) : OpOf(std::move(init)) {}

  // Writes d.
  absl::Status forward(const Stream& stream, const Tensor& a, const Tensor& b, const Tensor& d);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_GEMM_H_
