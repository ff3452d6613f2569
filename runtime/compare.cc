#include "runtime/compare.h"

#include "runtime/dtype_convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::internal {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// `value` as an element of `dtype`: what a kernel that makes no error at all would store.
double rounded(DType dtype, double value) {
  double element = 0;  // room for any dtype
  store_element(dtype, &element, value);
  return load_element(dtype, &element);
}

double steps_between(DType dtype, double got, double want, double size_step) {
  if (std::isnan(got) || std::isnan(want))
    return std::isnan(got) && std::isnan(want) ? 0 : kLargest;
  if (!std::isfinite(got) || !std::isfinite(want))
    return got == rounded(dtype, want) ? 0 : kLargest;
  const double step = rounding_step(dtype, want);
  const double error = std::fabs(got - want);
  if (error > step && got == rounded(dtype, want)) return 0;  // the dtype goes no further
  return std::min(error / (step + size_step), kLargest);
}

// The step of the arithmetic that kernels are to use, at the size of the tensor's largest element.
double step_of_size(DType dtype, const std::vector<double>& want) {
  double size = 0;
  for (double value : want) {
    if (std::isfinite(value)) size = std::max(size, std::fabs(value));
  }
  return rounding_step(dtype == DType::float64 ? DType::float64 : DType::float32, size);
}

bool is_integer(DType dtype) { return rounding_step(dtype, 1) == 0; }

}  // namespace

Difference compare(DType dtype, const std::vector<double>& got, const std::vector<double>& want) {
  Difference worst;
  const double size_step = is_integer(dtype) ? 0 : step_of_size(dtype, want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double steps = is_integer(dtype) ? std::fabs(got[i] - rounded(dtype, want[i]))
                                           : steps_between(dtype, got[i], want[i], size_step);
    if (i != 0 && steps <= worst.max_steps) continue;
    worst = {steps, std::fabs(got[i] - want[i]), i, got[i], want[i]};
  }
  return worst;
}

}  // namespace kiln::internal
