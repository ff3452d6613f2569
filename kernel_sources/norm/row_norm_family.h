#ifndef KILN_KERNEL_SOURCES_NORM_ROW_NORM_FAMILY_H_
#define KILN_KERNEL_SOURCES_NORM_ROW_NORM_FAMILY_H_

#include <kiln/registry.h>

namespace kiln {

// Layer, RMS, fused-add and adaptive norms.
void register_row_norms(Registry& registry);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROW_NORM_FAMILY_H_
