#ifndef KILN_RUNTIME_DLPACK_ABI_H_
#define KILN_RUNTIME_DLPACK_ABI_H_

#include <dlpack/dlpack.h>

#include <cstdint>

// What DLPack's header of version 0.6 lacks, by the ABI that later versions publish. Numbers and
// layout are fixed.
namespace kiln::dlpack {

// DLDataTypeCode
inline constexpr std::uint8_t kBool = 6;           // since 0.8, 8 bits
inline constexpr std::uint8_t kFloat8E4m3fn = 10;  // since 1.1, 8 bits
inline constexpr std::uint8_t kFloat8E5m2 = 12;

// DLManagedTensorVersioned::flags
inline constexpr std::uint64_t kReadOnly = 1;

// A consumer must refuse another major version; minor ones only add.
inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 1;

}  // namespace kiln::dlpack

#ifndef DLPACK_MAJOR_VERSION  // the header defines it from 1.0 on, together with these two

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);  // may be null; deletes `self` too
  std::uint64_t flags;
  DLTensor dl_tensor;
};

#endif

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64);
static_assert(sizeof(DLManagedTensorVersioned) == 80);

#endif  // KILN_RUNTIME_DLPACK_ABI_H_
