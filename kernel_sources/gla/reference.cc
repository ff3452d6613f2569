#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

namespace kiln {
namespace {

// One token of one head: the state's decay and update, then o.
struct Token {
  const double *q, *k, *g, *v;
  double* o;
};
void step(const Token& t, double* state, std::int64_t dim_k, std::int64_t dim_v, double scale) {
  std::fill(t.o, t.o + dim_v, 0.0);
  for (std::int64_t d = 0; d < dim_k; ++d) {
    const double gate = std::exp(t.g[d] > 0 ? 0.0 : t.g[d]);
    for (std::int64_t c = 0; c < dim_v; ++c) {
      double& s = state[d * dim_v + c];
      s = gate * s + t.k[d] * t.v[c];
      t.o[c] += scale * t.q[d] * s;
    }
  }
}

}  // namespace

absl::Status gla_reference(const ParamValues& params, const ParamValues&,
                           std::span<const HostTensor> inputs,
                           std::span<const HostTensor> outputs) {
  const Dims& shape = inputs[0].shape;
  const std::int64_t batch = shape[0], seqlen = shape[1], heads = shape[2], dim_k = shape[3];
  const std::int64_t dim_v = inputs[2].shape[3], size = dim_k * dim_v;
  double scale = std::get<double>(*find_param(params, "scale"));
  if (!(scale > 0)) scale = 1 / std::sqrt(static_cast<double>(dim_k));
  for (std::int64_t head = 0; head < batch * heads; ++head) {
    double* state = outputs[1].data + head * size;
    const double* initial = inputs[4].data;
    for (std::int64_t i = 0; i < size; ++i)
      state[i] = initial == nullptr ? 0 : initial[head * size + i];
    for (std::int64_t t = 0; t < seqlen; ++t) {
      const std::int64_t row = (head / heads * seqlen + t) * heads + head % heads;
      step(
          {inputs[0].data + row * dim_k, inputs[1].data + row * dim_k, inputs[3].data + row * dim_k,
           inputs[2].data + row * dim_v, outputs[0].data + row * dim_v},
          state, dim_k, dim_v, scale);
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
