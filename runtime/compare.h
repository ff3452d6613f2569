#ifndef KILN_RUNTIME_COMPARE_H_
#define KILN_RUNTIME_COMPARE_H_

#include <kiln/dtype.h>
#include <kiln/export.h>

#include <cstddef>
#include <vector>

namespace kiln::internal {

// How far a tensor is from its reference, in the unit of docs/numerics.md: an element's allowed
// error is `tolerance_steps` of them.
struct Difference {
  double max_steps = 0;     // the largest double for a value that is not finite where it must be
  double max_absolute = 0;  // of the same element
  std::size_t where = 0;    // its index
  double got = 0, want = 0;
};
// REQUIRES: as many elements in both.
KILN_EXPORT Difference compare(DType dtype, const std::vector<double>& got,
                               const std::vector<double>& want);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_COMPARE_H_
