#ifndef KILN_RUNTIME_DTYPE_CONVERT_H_
#define KILN_RUNTIME_DTYPE_CONVERT_H_

#include <kiln/dtype.h>
#include <kiln/export.h>

#include <cstddef>
#include <cstdint>

// Elements of every dtype as doubles, on the host: exact one way, one rounding the other. For tools
// and tests; kernels convert on their own device.
namespace kiln::internal {

// Writes `value` as one element of `dtype`, rounded to nearest, ties to even.
//   floats    beyond the largest finite value: infinity where the dtype has one; float8_e4m3
//   saturates at 448, as CUDA's
//             conversions do, and its NaN stands only for NaN
//   integers  clamped to the dtype's range, NaN gives 0; bool: 0 for 0, else 1
KILN_EXPORT void store_element(DType dtype, void* element, double value);
// The element's value, exactly (an int64 beyond 2^53 is rounded).
KILN_EXPORT double load_element(DType dtype, const void* element);

// The same for `count` elements that lie together.
KILN_EXPORT void store_elements(DType dtype, void* elements, const double* values,
                                std::size_t count);
KILN_EXPORT void load_elements(DType dtype, double* values, const void* elements,
                               std::size_t count);

// Distance between `dtype`'s neighbours at the size of `value` (docs/numerics.md): 2^(e - p + 1)
// where 2^e <= |value|, p is the dtype's precision in bits, and e is not below the smallest normal
// exponent. 0 for integers.
KILN_EXPORT double rounding_step(DType dtype, double value);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_DTYPE_CONVERT_H_
