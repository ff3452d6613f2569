#include "base/mapping.h"

#include <sys/mman.h>

namespace kiln {

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void Mapping::read_ahead() const {
  if (data_ == nullptr) return;
#ifdef MADV_POPULATE_READ
  if (::madvise(data_, size_, MADV_POPULATE_READ) == 0) return;
#endif
  ::madvise(data_, size_, MADV_WILLNEED);  // a kernel before 5.14
}

}  // namespace kiln
