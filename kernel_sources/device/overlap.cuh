// Kernels of one stream that overlap (sm_90 on; before, these do nothing): one that was launched
// with LaunchShape::programmatic_overlap starts when all blocks of the kernel before it have let
// it, and waits for that kernel's results itself.
#pragma once

namespace kiln {

__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace kiln
