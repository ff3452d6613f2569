#include "reference.h"

#include <cstdint>

namespace kiln {

absl::Status gemm_reference(const ParamValues&, const ParamValues&,
                            std::span<const HostTensor> inputs,
                            std::span<const HostTensor> outputs) {
  const HostTensor &a = inputs[0], &b = inputs[1];
  const std::int64_t m = a.shape[0], n = b.shape[0], k = a.shape[1];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t c = 0; c < k; ++c) sum += a.data[i * k + c] * b.data[j * k + c];
      outputs[0].data[i * n + j] = sum;
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
