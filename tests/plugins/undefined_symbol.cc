// Needs a function that nobody has.
#include <kiln/plugin.h>

extern "C" int kiln_test_function_that_is_nowhere();

static absl::Status fill(kiln::Registry&) {
  return kiln_test_function_that_is_nowhere() == 0 ? absl::OkStatus() : absl::InternalError("no");
}
KILN_PLUGIN("undefined_symbol", fill)
