#ifndef KILN_JIT_ELF_SYMBOLS_H_
#define KILN_JIT_ELF_SYMBOLS_H_

#include <kiln/export.h>

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace kiln::jit {

// Names of the functions that a 64-bit ELF image (a cubin, a shared object) defines for others:
// global or weak, from .symtab and .dynsym, sorted, each once. Empty for bytes that are no such
// image; never reads outside `image`.
KILN_EXPORT std::vector<std::string> defined_functions(std::string_view image);

// InvalidArgument with ErrorKind::compile_error naming those of `kernels` that are not among
// `functions`.
KILN_EXPORT absl::Status check_kernels(std::string_view source_name,
                                       const std::vector<std::string>& kernels,
                                       const std::vector<std::string>& functions);

}  // namespace kiln::jit

#endif  // KILN_JIT_ELF_SYMBOLS_H_
