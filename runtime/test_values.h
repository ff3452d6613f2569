#ifndef KILN_RUNTIME_TEST_VALUES_H_
#define KILN_RUNTIME_TEST_VALUES_H_

#include <kiln/dtype.h>
#include <kiln/export.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::internal {

// Values for a tensor that is to be computed on: normal, of mean 0.5 and deviation 1, so that
// neither a forgotten mean nor a forgotten sign goes unseen; integers ten times that, rounded.
// Element i of a tensor has value(i). A table of prime length is repeated: no row length divides
// it, and large tensors are filled at the speed of memory.
class KILN_EXPORT TestValues {
 public:
  TestValues(DType dtype, std::uint64_t seed);
  // The value as its dtype holds it.
  double value(std::size_t i) const { return values_[i % values_.size()]; }
  // Its bytes, size_of(dtype) of them.
  const char* bytes(std::size_t i) const {
    return bytes_.data() + i % values_.size() * element_bytes_;
  }
  // The bytes of the table.
  const std::vector<char>& table() const { return bytes_; }

 private:
  std::size_t element_bytes_;
  std::vector<double> values_;
  std::vector<char> bytes_;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TEST_VALUES_H_
