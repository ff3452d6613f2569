#include "gla_prefill.h"

namespace kiln {

Config GlaPrefillKernel::default_config(const DeviceFacts&) const { return {{"staged", 8}}; }

std::vector<Config> GlaPrefillKernel::autotune_configs(const DeviceFacts&) const {
  return {{{"staged", 4}}, {{"staged", 8}}, {{"staged", 12}}};
}

std::vector<Program> GlaPrefillKernel::programs(const DeviceFacts&, const Config& config) const {
  Program program = gla_program("gla_prefill");
  program.constants.push_back({"STAGED", config["staged"]});
  return {program};
}

absl::Status GlaPrefillKernel::forward(const Stream& stream, const Tensor& q, const Tensor& k,
                                       const Tensor& v, const Tensor& g,
                                       const Tensor& initial_state, const Tensor& o,
                                       const Tensor& final_state) const {
  LaunchShape shape;
  KILN_ASSIGN_OR_RETURN(shape.grid[0], grid_of(q));
  shape.block = {256, 1, 1};
  const std::int64_t seqlen = q.shape[1];
  const int heads = static_cast<int>(q.shape[2]);
  return launch(loaded(stream), 0, stream, shape, q.data, k.data, v.data, g.data,
                initial_state.data, o.data, final_state.data, seqlen, heads);
}

}  // namespace kiln
