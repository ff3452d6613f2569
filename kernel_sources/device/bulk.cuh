// Copies of whole runs of bytes into shared memory by the copy engine (sm_90 on), and the barriers
// in shared memory on which they and threads complete. One phase of a barrier is over when its
// arrivals and the bytes announced to it are there; who waits names the phase's parity, which
// starts at 0.
#pragma once

#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "bulk copies need sm_90 or later"
#endif

namespace kiln {

struct Barrier {
  uint64 state;

  __device__ __forceinline__ uint32 address() const {
    return static_cast<uint32>(__cvta_generic_to_shared(this));
  }
  // By one thread, before a barrier of the block that all users pass; `fence_barriers` once after
  // the last.
  __device__ __forceinline__ void init(uint32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                 : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  // Arrives, and announces `bytes` that copies will bring.
  __device__ __forceinline__ void arrive_expecting(uint32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }
  // Whether the phase is over; by one thread, or by a warp that then agrees on it.
  __device__ __forceinline__ bool test(uint32 parity) const {
    uint32 over;
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(over)
        : "r"(address()), "r"(parity)
        : "memory");
    return over != 0;
  }
  __device__ __forceinline__ void wait(uint32 parity) const {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(address()),
        "r"(parity)
        : "memory");
  }
};

__device__ __forceinline__ void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Copies `bytes`, a multiple of 16, to shared memory; both addresses are multiples of 16. Where the
// one in shared memory is no multiple of 32, a kernel that is bound by memory takes an eighth
// longer (H200). Of hints there is Hint::hold, where `holds`, for which the reader calls `let_go`;
// evict_first cost 5 % of the rate.
template <Hint H = Hint::keep>
__device__ __forceinline__ void bulk_copy(void* shared, const void* global, uint32 bytes,
                                          const Barrier& done, bool holds = true) {
  const uint32 to = static_cast<uint32>(__cvta_generic_to_shared(shared));
  static_assert(H == Hint::keep || H == Hint::hold, "a copy is held or not");
  if constexpr (H == Hint::keep) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(global), "r"(bytes), "r"(done.address())
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(to),
        "l"(global), "r"(bytes), "r"(done.address()), "l"(policy_of<H>(holds))
        : "memory");
  }
}

// The way back: copies `bytes`, a multiple of 16, out of shared memory. Whoever wrote there calls
// `fence_copies` before the thread that copies is told. What was copied from may be written again
// once that thread's `wait_for_copies` is over; the results are in memory when the kernel ends.
__device__ __forceinline__ void bulk_store(void* global, const void* shared, uint32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(static_cast<uint32>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void fence_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void wait_for_copies() {
  asm volatile(
      "cp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group.read 0;" ::
          : "memory");
}

// The address, for block `rank` of the cluster, of what is at `local` in this block's shared
// memory.
__device__ __forceinline__ uint32 address_in_cluster(const void* local, uint32 rank) {
  uint32 address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(static_cast<uint32>(__cvta_generic_to_shared(local))), "r"(rank));
  return address;
}

// Stores at `local`'s place in the shared memory of block `rank`, and counts the bytes on `done`'s
// place there. Both are addresses in this block's shared memory.
__device__ __forceinline__ void send_to_cluster(void* local, const Barrier& done, uint32 rank,
                                                float4 v) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, "
      "[%1];" ::"r"(address_in_cluster(local, rank)),
      "r"(address_in_cluster(&done, rank)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}
__device__ __forceinline__ void send_to_cluster(void* local, const Barrier& done, uint32 rank,
                                                int64 v) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %2, [%1];" ::"r"(
                   address_in_cluster(local, rank)),
               "r"(address_in_cluster(&done, rank)), "l"(v)
               : "memory");
}

// A place in a ring of `Slots` slots and the parity of its phase.
template <int Slots>
struct RingPlace {
  int slot = 0;
  uint32 parity = 0;
  __device__ __forceinline__ void next() {
    if (++slot == Slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace kiln
