#pragma once

#include <cstdint>

// Sums and the last step of layer normalization, on floats. The pragmas allow the order of
// additions to change, in these loops only; four sums at a time keep the adders busy.
namespace kiln {

struct Moments {
  float first, second;  // sums of d and d*d
};

inline float sum(const float* v, int count) {
  const int quarter = count / 4;
  float a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (int i = 0; i < quarter; ++i) {
    a += v[i];
    b += v[i + quarter];
    c += v[i + 2 * quarter];
    d += v[i + 3 * quarter];
  }
  for (int i = 4 * quarter; i < count; ++i) a += v[i];
  return (a + b) + (c + d);
}

// Sums of the deviations from `shift`.
inline Moments moments(const float* v, int count, float shift) {
  const int half = count / 2;
  float a1 = 0, a2 = 0, b1 = 0, b2 = 0;
#pragma omp simd reduction(+ : a1, a2, b1, b2)
  for (int i = 0; i < half; ++i) {
    const float a = v[i] - shift;
    const float b = v[i + half] - shift;
    a1 += a;
    a2 += a * a;
    b1 += b;
    b2 += b * b;
  }
  if (count % 2 != 0) {
    const float a = v[count - 1] - shift;
    a1 += a;
    a2 += a * a;
  }
  return {a1 + b1, a2 + b2};
}

// How a row is normalised: (v - shift - delta) * scale. `shift` is a float near the mean and
// `delta` what it lacks, so that a mean far larger than the deviations costs no accuracy.
struct RowScale {
  float shift, delta, scale;
};

inline RowScale row_scale(float shift, double first, double second, std::int64_t n, double eps) {
  const double delta = first / static_cast<double>(n);
  const double var = (second - first * delta) / static_cast<double>(n);
  const double scale = 1.0 / __builtin_sqrt((var < 0 ? 0 : var) + eps);  // a NaN stays one
  return {shift, static_cast<float>(delta), static_cast<float>(scale)};
}

}  // namespace kiln
