#include <kiln/registry.h>

#include "batch_norm_family.h"
#include "row_norm_family.h"

namespace kiln {

void register_norm(Registry& registry);
void register_norm(Registry& registry) {
  register_row_norms(registry);
  register_batch_norms(registry);
}

}  // namespace kiln
