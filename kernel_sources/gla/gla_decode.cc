#include "gla_decode.h"

namespace kiln {

Refusal GlaDecodeKernel::refusal(const GlaCall& call) {
  if (call.seqlen != 1) return refuse("serves one token a sequence, got ", call.seqlen);
  return GlaKernel::refusal(call);
}

Config GlaDecodeKernel::default_config(const DeviceFacts&) const { return {{"warps", 8}}; }

std::vector<Config> GlaDecodeKernel::autotune_configs(const DeviceFacts&) const {
  return {{{"warps", 4}}, {{"warps", 8}}, {{"warps", 16}}};
}

std::vector<Program> GlaDecodeKernel::programs(const DeviceFacts&, const Config& config) const {
  Program program = gla_program("gla_decode");
  program.constants.push_back({"WARPS", config["warps"]});
  return {program};
}

absl::Status GlaDecodeKernel::forward(const Stream& stream, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const Tensor& g, const Tensor& initial_state,
                                      const Tensor& o, const Tensor& final_state) const {
  const Loaded& now = loaded(stream);
  LaunchShape shape;
  KILN_ASSIGN_OR_RETURN(shape.grid[0], grid_of(q));
  shape.block = {static_cast<std::uint32_t>(now.config["warps"] * 32), 1, 1};
  return launch(now, 0, stream, shape, q.data, k.data, v.data, g.data, initial_state.data, o.data,
                final_state.data);
}

}  // namespace kiln
