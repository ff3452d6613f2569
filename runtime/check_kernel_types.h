#ifndef KILN_RUNTIME_CHECK_KERNEL_TYPES_H_
#define KILN_RUNTIME_CHECK_KERNEL_TYPES_H_

#include <kiln/registry.h>

#include <absl/status/status.h>

#include <vector>

namespace kiln::internal {

// Every class registered for an op against the op's interfaces and against each other, when an op
// is constructed. InvalidArgument with the fragments of docs/errors.md; the key, the class and
// where it came from are in the message.
absl::Status check_kernel_types(const OpType& type, const std::vector<KernelRow>& rows);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_CHECK_KERNEL_TYPES_H_
