#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace kiln {
namespace {

// The query with its first 2 * pairs elements turned by the given angles.
std::vector<double> rotated(const double* q, std::int64_t dim, const HostTensor& cos,
                            const HostTensor& sin) {
  std::vector<double> out(q, q + dim);
  const std::int64_t pairs = cos.data == nullptr ? 0 : cos.shape[0];
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double a = q[i], b = q[i + pairs];
    out[static_cast<std::size_t>(i)] = a * cos.data[i] - b * sin.data[i];
    out[static_cast<std::size_t>(i + pairs)] = b * cos.data[i] + a * sin.data[i];
  }
  return out;
}

// Keys or values of one kv head of one sequence.
struct HeadRows {
  const double* first;
  std::int64_t stride, keys, dim;
};
HeadRows rows_of(const HostTensor& t, std::int64_t batch, std::int64_t head) {
  const std::int64_t keys = t.shape[1], heads = t.shape[2], dim = t.shape[3];
  return {t.data + (batch * keys * heads + head) * dim, heads * dim, keys, dim};
}

std::vector<double> scores_of(const std::vector<double>& q, const HeadRows& k, double scale,
                              double softcap) {
  std::vector<double> scores(static_cast<std::size_t>(k.keys));
  for (std::int64_t j = 0; j < k.keys; ++j) {
    double dot = 0;
    for (std::int64_t d = 0; d < k.dim; ++d)
      dot += q[static_cast<std::size_t>(d)] * k.first[j * k.stride + d];
    const double s = dot * scale;
    scores[static_cast<std::size_t>(j)] = softcap > 0 ? softcap * std::tanh(s / softcap) : s;
  }
  return scores;
}

// The mean of the values under the softmax of the scores; 0 without keys.
void mean_value(const std::vector<double>& scores, const HeadRows& v, double scale, double* out) {
  std::fill(out, out + v.dim, 0.0);
  double max = -std::numeric_limits<double>::infinity(), weight = 0;
  for (double s : scores) max = std::max(max, s);
  for (std::int64_t j = 0; j < v.keys; ++j) {
    const double w = std::exp(scores[static_cast<std::size_t>(j)] - max);
    weight += w;
    for (std::int64_t d = 0; d < v.dim; ++d) out[d] += w * v.first[j * v.stride + d];
  }
  for (std::int64_t d = 0; d < v.dim; ++d) out[d] = v.keys == 0 ? 0 : out[d] / weight * scale;
}

}  // namespace

absl::Status gqa_decode_reference(const ParamValues& params, const ParamValues&,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs) {
  const HostTensor &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const std::int64_t batch = k.shape[0], heads_kv = k.shape[2], dim = k.shape[3];
  const std::int64_t heads = q.shape[q.shape.size() - 2];
  double scale = std::get<double>(*find_param(params, "scale"));
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(dim));
  const double softcap = std::get<double>(*find_param(params, "softcap"));
  const auto scale_at = [&](const HostTensor& scales, std::int64_t at) {
    return scales.data == nullptr ? 1 : scales.data[at];
  };
  for (std::int64_t at = 0; at < batch * heads; ++at) {
    const std::int64_t b = at / heads, g = at % heads / (heads / heads_kv);
    const std::int64_t kv = b * heads_kv + g;
    const std::vector<double> query = rotated(q.data + at * dim, dim, inputs[5], inputs[6]);
    const std::vector<double> scores =
        scores_of(query, rows_of(k, b, g), scale * scale_at(inputs[3], kv), softcap);
    mean_value(scores, rows_of(v, b, g), scale_at(inputs[4], kv), outputs[0].data + at * dim);
  }
  return absl::OkStatus();
}

}  // namespace kiln
