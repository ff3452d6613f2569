// Decode of one long sequence of float8_e4m3 keys and values: splits fill the device, a second
// kernel adds them up.
#include "kernel_sources/attention/decode.cuh"
#include "kernel_sources/attention/decode_combine.cuh"

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gqa_dense_fp8_decode(const kiln::attention::DecodeArgs args) {
  __shared__ kiln::attention::Shared shared;
  kiln::attention::decode(args, shared);
}

extern "C" __global__ void __launch_bounds__(128)
    gqa_dense_fp8_decode_combine(const kiln::attention::DecodeArgs args) {
  kiln::attention::combine(args);
}
