#ifndef KILN_KERNEL_SOURCES_NORM_BATCH_NORM_FAMILY_H_
#define KILN_KERNEL_SOURCES_NORM_BATCH_NORM_FAMILY_H_

#include <kiln/registry.h>

namespace kiln {

// Batch, instance and group normalization.
void register_batch_norms(Registry& registry);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_BATCH_NORM_FAMILY_H_
