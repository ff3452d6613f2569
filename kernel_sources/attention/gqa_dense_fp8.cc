#include "gqa_dense_fp8.h"

namespace kiln {

Refusal GqaDenseFp8Kernel::refusal(const AttentionCall& call) {
  if (!call.dense_fp8_region()) {
    return refuse("serves k and v of float8_e4m3 with q in 16 bits, got k of ", call.dtype,
                  " and q of ", call.dtype_q);
  }
  if (call.dim % 2 != 0 || call.align < 2) {
    return refuse("reads pairs of elements: serves heads of an even number at even addresses, got ",
                  call.dim, " elements at multiples of ", call.align);
  }
  return DecodeKernel::refusal(call);
}

Config GqaDenseFp8Kernel::default_config(const DeviceFacts&) const {
  return {{"warps", 4}, {"keys_in_flight", 2}};
}

std::vector<Config> GqaDenseFp8Kernel::autotune_configs(const DeviceFacts&) const {
  return {{{"warps", 4}, {"keys_in_flight", 2}}, {{"warps", 4}, {"keys_in_flight", 4}}};
}

std::vector<Program> GqaDenseFp8Kernel::programs(const DeviceFacts&, const Config& config) const {
  return {decode_program("gqa_dense_fp8.cu", {"gqa_dense_fp8"}, config)};
}

absl::Status GqaDenseFp8Kernel::forward(const Stream& stream, const GqaDecodeTensors& t) const {
  const Loaded& now = loaded(stream);
  LaunchShape shape;
  shape.block = {static_cast<std::uint32_t>(now.config["warps"] * 32), 1, 1};
  return launch_splits(stream, now, shape, t, 1, blocks_of_split(t));
}

}  // namespace kiln
