// Needs a library that is not where the loader looks.
#include <kiln/plugin.h>

extern "C" int not_a_plugin();

static absl::Status fill(kiln::Registry&) {
  return not_a_plugin() == 1 ? absl::OkStatus() : absl::InternalError("no");
}
KILN_PLUGIN("missing_library", fill)
