#pragma once

#include <cstdint>

// The contract between the CPU backend and the kernels it compiles; both sides include this file,
// so that its contents are part of every compile key.
//
// A kernel is one C function. It is called once for every block of the grid, by any thread and in
// any order, several blocks at a time: blocks must not depend on one another. It must not throw,
// and must not keep what it is given.
extern "C" {
struct KilnCpuBlock {
  std::uint32_t grid[3];   // blocks of the launch
  std::uint32_t index[3];  // of this block
  std::uint32_t block[3];  // the launch's block shape; the backend itself starts one thread a block
  std::uint32_t scratch_bytes;  // the launch's shared memory
  void* scratch;  // as many bytes, 64-byte aligned, of this block alone; uninitialised
};
using KilnCpuKernel = void (*)(const KilnCpuBlock* block, void** args) noexcept;
}

// KILN_CPU_KERNEL(name) { … } defines kernel `name`, with `block` and `args` in scope.
#define KILN_CPU_KERNEL(name)                                  \
  extern "C" __attribute__((visibility("default"))) void name( \
      [[maybe_unused]] const KilnCpuBlock* block, [[maybe_unused]] void** args) noexcept

namespace kiln {

// The i-th argument of the launch. A must be exactly the type that the kernel class passes.
template <class A>
inline A arg(void** args, int i) {
  return *static_cast<const A*>(args[i]);
}

}  // namespace kiln
