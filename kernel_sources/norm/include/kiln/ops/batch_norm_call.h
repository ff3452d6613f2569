#ifndef KILN_OPS_BATCH_NORM_CALL_H_
#define KILN_OPS_BATCH_NORM_CALL_H_

#include <kiln/call_spec.h>
#include <kiln/dtype.h>

#include <cstdint>

namespace kiln::inline v1 {

// The facts that choose and build a kernel of batch or instance normalization of x [B, C, *L], in
// training and in inference.
struct BatchNormCall {
  std::int64_t batch = 1;     // B
  std::int64_t channels = 1;  // C
  std::int64_t spatial = 1;   // the product of L
  double eps = 1e-5;
  double momentum = 0.1;  // of the running statistics; 0 in inference, which moves none
  bool tracks = false;    // moves running statistics (training, where a call has them)
  bool has_weight = false;
  bool has_bias = false;
  DType dtype = DType::float16;  // of x and y
  int align = 16;                // bytes, at most 16: divides the addresses of x and y
  KILN_CALL_SPEC(BatchNormCall, batch, channels, spatial, eps, momentum, tracks, has_weight,
                 has_bias, dtype, align)

  std::int64_t per_channel() const { return batch * spatial; }
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_BATCH_NORM_CALL_H_
