#ifndef KILN_JIT_HERMETIC_H_
#define KILN_JIT_HERMETIC_H_

#include <kiln/compiler.h>
#include <kiln/export.h>
#include <kiln/status.h>

#include <string_view>

namespace kiln::jit {

// What keeps a compile key complete: nothing may reach the binary that the request does not hold.
// The checks are the same for every compiler.

KILN_EXPORT bool is_identifier(std::string_view text);

// A relative path with '/' between its parts, none of them empty, "." or "..". InvalidArgument.
KILN_EXPORT absl::Status check_source_name(std::string_view name);

// Errors: InvalidArgument naming file and line (or the option) when the request holds
//   - __DATE__, __TIME__ or __TIMESTAMP__ (also in a comment: the check is of words),
//   - a zero byte, which would end the source early for compilers that take C strings,
//   - an include of an absolute path or of one that goes up (".."),
//   - an option that reads another file or replaces one that Kiln sets (-I, -include, -arch, -o,
//   ...).
KILN_EXPORT absl::Status check_hermetic(const CompileRequest& request);

}  // namespace kiln::jit

#endif  // KILN_JIT_HERMETIC_H_
