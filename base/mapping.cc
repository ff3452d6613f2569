#include "base/mapping.h"

#include <sys/mman.h>

namespace kiln {

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace kiln
