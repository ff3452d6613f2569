// Decode of float8_e4m3 keys and values, a block for all keys of a kv head: one kernel, no
// workspace.
#include "kernel_sources/attention/decode.cuh"

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gqa_dense_fp8(const kiln::attention::DecodeArgs args) {
  __shared__ kiln::attention::Shared shared;
  kiln::attention::decode(args, shared);
}
