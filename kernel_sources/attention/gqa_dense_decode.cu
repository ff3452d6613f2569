// Decode over keys of any number, cut into splits where the device would else stand idle; a second
// kernel adds them up.
#include "kernel_sources/attention/decode.cuh"
#include "kernel_sources/attention/decode_combine.cuh"

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gqa_dense_decode(const kiln::attention::DecodeArgs args) {
  __shared__ kiln::attention::Shared shared;
  kiln::attention::decode(args, shared);
}

extern "C" __global__ void __launch_bounds__(128)
    gqa_dense_decode_combine(const kiln::attention::DecodeArgs args) {
  kiln::attention::combine(args);
}
