#ifndef KILN_OPS_LAYER_NORM_CALL_H_
#define KILN_OPS_LAYER_NORM_CALL_H_

#include <kiln/call_spec.h>
#include <kiln/dtype.h>

#include <cstdint>

namespace kiln::inline v1 {

// The facts that choose and build a kernel that normalises rows: layer, RMS, fused-add and adaptive
// norms take it. How many rows a call has is no fact, but for whether they are few: the same row
// gives the same bits in every batch.
struct LayerNormCall {
  std::int64_t n = 0;  // elements of a row
  double eps = 1e-5;
  DType dtype = DType::float16;  // of every tensor
  bool has_weight = true;        // a scale of n elements
  bool has_bias = true;          // a shift of n elements
  int align = 16;                // bytes, at most 16: divides every pointer, and every row's start
  bool strided = false;          // rows of x lie further apart than n elements
  bool few_rows = false;         // at most kFewRows: clusters share each between multiprocessors
  static constexpr std::int64_t kFewRows = 32;
  KILN_CALL_SPEC(LayerNormCall, n, eps, dtype, has_weight, has_bias, align, strided, few_rows)
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_LAYER_NORM_CALL_H_
