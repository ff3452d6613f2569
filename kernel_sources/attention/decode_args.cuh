// What a decode kernel is launched with: read by the host's compiler and by NVRTC.
#pragma once

namespace kiln::attention {

struct DecodeArgs {
  const void* q;  // [batch, heads, dim]
  const void* k;  // addressed by the strides below, in elements
  const void* v;
  const float* k_scale;  // [batch, heads_kv], or null
  const float* v_scale;
  const float* rope_cos;  // [rope_pairs], or null
  const float* rope_sin;
  void* out;             // [batch, heads, dim]
  float* partial_sums;   // [batch, heads, splits, dim]
  float* partial_stats;  // [batch, heads, splits, 2]: the largest score (to base 2), the sum of the
                         // weights
  long long k_batch_stride, k_key_stride, k_head_stride;
  long long v_batch_stride, v_key_stride, v_head_stride;
  long long seqlen_kv;
  int heads_kv;
  int splits;
  int rope_pairs;
  long long keys_of_split;  // of each split but the last, which has what is left
};

}  // namespace kiln::attention
