#ifndef KILN_OPS_ATTENTION_CALL_H_
#define KILN_OPS_ATTENTION_CALL_H_

#include <kiln/call_spec.h>
#include <kiln/dtype.h>

#include <cstdint>

namespace kiln::inline v1 {

// The facts that choose and build an attention kernel. The whole family takes it.
struct AttentionCall {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // of q
  std::int64_t heads_kv = 1;  // of k and v; heads is a multiple of it
  std::int64_t dim = 128;     // elements of a head
  std::int64_t seqlen_q = 1;
  std::int64_t seqlen_kv = 0;
  DType dtype = DType::float16;    // of k and v
  DType dtype_q = DType::float16;  // of q and of the result
  double scale = 1;                // of the scores
  double softcap = 0;              // scores become softcap * tanh(score / softcap); 0: they stay
  bool fuse_rope = false;          // q is rotated by the kernel
  int align = 16;  // bytes, at most 16: divides every address of k and v where a head begins
  KILN_CALL_SPEC(AttentionCall, batch, heads, heads_kv, dim, seqlen_q, seqlen_kv, dtype, dtype_q,
                 scale, softcap, fuse_rope, align)

  // Query heads that share one head of k and v.
  std::int64_t group() const { return heads_kv > 0 ? heads / heads_kv : 0; }
  // One query a sequence against dense k and v of its own dtype.
  bool dense_decode_region() const { return seqlen_q == 1 && is_16_bit(dtype) && dtype == dtype_q; }
  // Dense k and v in float8_e4m3, q in 16 bits.
  bool dense_fp8_region() const { return dtype == DType::float8_e4m3 && is_16_bit(dtype_q); }

 private:
  static constexpr bool is_16_bit(DType d) { return d == DType::float16 || d == DType::bfloat16; }
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_ATTENTION_CALL_H_
