// Accesses of global memory, 2 to 16 bytes wide, with a cache hint. A `Pack<T, V>` is V
// neighbouring elements as they lie in memory: 16-bit elements stay packed in registers until they
// are used.
#pragma once

#include "kernel_sources/device/dtype.cuh"

namespace kiln {

// How an access treats the caches.
enum class Hint : int {
  keep = 0,    // likely read again soon: weights, shared by all rows
  stream = 1,  // touched once: not kept in L1, first to be evicted from L2
  plain = 2,   // no hint, and coherent: for data that this kernel itself wrote
  hold = 3,    // loads, touched once: not kept in L1, last to be evicted from L2 until `let_go`. A
               // kernel that moves more than the L2 holds is 2 to 5 % faster by it (H200)
};

template <int Bytes>
struct Words {  // the registers of an access
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "an access moves 2, 4, 8 or 16 bytes");
  uint32 w[Bytes / 4];
};
template <>
struct Words<2> {
  uint16 w[1];
};

// The L2's policy for a hint, kept in a register pair by whoever needs it. `wanted`: false makes of
// Hint::hold a load without a policy.
template <Hint H>
__device__ __forceinline__ uint64 policy_of(bool wanted = true) {
  uint64 policy = 0;
  if constexpr (H == Hint::stream) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else if constexpr (H == Hint::hold) {
    uint64 last;
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    if (wanted) policy = last;
  }
  return policy;
}

// The line of 128 bytes around `p`.
template <typename T>
__device__ __forceinline__ const T* line_of(const T* p) {
  return reinterpret_cast<const T*>(reinterpret_cast<uint64>(p) & ~uint64{127});
}
// Of what a kernel holds, the last so many bytes must be let go of, or they keep their place in the
// L2 long after it; what was held before makes room for them (docs/decisions/0016).
inline constexpr int64 let_go_bytes = 32 << 20;
// Whether the `i`-th of `count` runs of `bytes`, which are read about in order, is among those.
template <typename Int>
__device__ __forceinline__ bool must_let_go(Int i, Int count, int64 bytes) {
  return i >= count - static_cast<Int>((let_go_bytes + bytes - 1) / bytes);
}
// Ends Hint::hold for a line, once it has been read. `when`: 0 does nothing, by a predicate.
__device__ __forceinline__ void let_go(const void* line, uint32 when = 1) {
  asm volatile(
      "{ .reg .pred q; setp.ne.u32 q, %1, 0; @q applypriority.global.L2::evict_normal [%0], 128; "
      "}" ::"l"(line),
      "r"(when));
}

// Loads through the read-only path (all but `plain`) carry no memory clobber: the data must not
// change while the kernel runs, so the compiler may move them freely, and does: to shortly before
// their use, behind barriers, too. `Pinned` ones stay where `loads_before` has them. `when`: 0
// leaves `r` as it is, by a predicate: a branch would let the compiler put the use of one load
// before the next.
#define KILN_LOAD(BYTES, TYPE, NEXT, LAST, VEC, OUT, ...)                                         \
  template <Hint H, bool Pinned = false>                                                          \
  __device__ __forceinline__ void load_words(uint32 when, const void* p, Words<BYTES>& r,         \
                                             uint64 policy = policy_of<H>()) {                    \
    if constexpr (H == Hint::plain) {                                                             \
      asm volatile("{ .reg .pred q; setp.ne.u32 q, %" NEXT ", 0; @q ld.global" VEC TYPE " " OUT   \
                   "; }"                                                                          \
                   : __VA_ARGS__                                                                  \
                   : "l"(p), "r"(when)                                                            \
                   : "memory");                                                                   \
    } else if constexpr (H == Hint::keep) {                                                       \
      KILN_PINNED(Pinned, "{ .reg .pred q; setp.ne.u32 q, %" NEXT ", 0; @q ld.global.nc" VEC TYPE \
                          " " OUT "; }"                                                           \
                  : __VA_ARGS__                                                                   \
                  : "l"(p), "r"(when));                                                           \
    } else {                                                                                      \
      KILN_PINNED(Pinned, "{ .reg .pred q; setp.ne.u32 q, %" LAST                                 \
                          ", 0; @q ld.global.nc.L1::no_allocate.L2::cache_hint" VEC TYPE " " OUT  \
                          ", %" NEXT "; }"                                                        \
                  : __VA_ARGS__                                                                   \
                  : "l"(p), "l"(policy), "r"(when));                                              \
    }                                                                                             \
  }
#define KILN_PINNED(PINNED, ...) \
  do {                           \
    if constexpr (PINNED) {      \
      asm volatile(__VA_ARGS__); \
    } else {                     \
      asm(__VA_ARGS__);          \
    }                            \
  } while (false)
KILN_LOAD(16, ".u32", "5", "6", ".v4", "{%0, %1, %2, %3}, [%4]", "+r"(r.w[0]), "+r"(r.w[1]),
          "+r"(r.w[2]), "+r"(r.w[3]))
KILN_LOAD(8, ".u32", "3", "4", ".v2", "{%0, %1}, [%2]", "+r"(r.w[0]), "+r"(r.w[1]))
KILN_LOAD(4, ".u32", "2", "3", "", "%0, [%1]", "+r"(r.w[0]))
KILN_LOAD(2, ".u16", "2", "3", "", "%0, [%1]", "+h"(r.w[0]))
#undef KILN_PINNED
#undef KILN_LOAD

#define KILN_STORE(BYTES, TYPE, CONSTRAINT, VEC, IN, ...)                                   \
  template <Hint H>                                                                         \
  __device__ __forceinline__ void store_words(void* p, const Words<BYTES>& r) {             \
    if constexpr (H == Hint::stream) {                                                      \
      asm volatile("st.global.L1::no_allocate.L2::cache_hint" VEC TYPE " [%0], " IN         \
                   ", %" CONSTRAINT ";" ::"l"(p),                                           \
                   __VA_ARGS__, "l"(policy_of<H>())                                         \
                   : "memory");                                                             \
    } else {                                                                                \
      asm volatile("st.global" VEC TYPE " [%0], " IN ";" ::"l"(p), __VA_ARGS__ : "memory"); \
    }                                                                                       \
  }
KILN_STORE(16, ".u32", "5", ".v4", "{%1, %2, %3, %4}", "r"(r.w[0]), "r"(r.w[1]), "r"(r.w[2]),
           "r"(r.w[3]))
KILN_STORE(8, ".u32", "3", ".v2", "{%1, %2}", "r"(r.w[0]), "r"(r.w[1]))
KILN_STORE(4, ".u32", "2", "", "%1", "r"(r.w[0]))
KILN_STORE(2, ".u16", "2", "", "%1", "h"(r.w[0]))
#undef KILN_STORE

template <typename T, int V>
struct Pack {
  Words<V* static_cast<int>(sizeof(T))> words;

  // Calls f(index, value) for each element, in order of address.
  template <typename F>
  __device__ __forceinline__ void each(F f) const {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < V; ++i) f(i, __uint_as_float(words.w[i]));
    } else if constexpr (V == 1) {
      f(0, to_float(T{words.w[0]}));
    } else {
#pragma unroll
      for (int i = 0; i < V / 2; ++i) {
        const FloatPair p = unpack<T>(words.w[i]);
        f(2 * i, p.low);
        f(2 * i + 1, p.high);
      }
    }
  }
  // Element values in float; `from` is the inverse and rounds once.
  __device__ __forceinline__ void to(float (&out)[V]) const {
    each([&](int i, float v) { out[i] = v; });
  }
  __device__ __forceinline__ static Pack from(const float (&in)[V]) {
    Pack p;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < V; ++i) p.words.w[i] = __float_as_uint(in[i]);
    } else if constexpr (V == 1) {
      p.words.w[0] = from_float<T>(in[0]).bits;
    } else {
#pragma unroll
      for (int i = 0; i < V / 2; ++i) p.words.w[i] = pack<T>(in[2 * i], in[2 * i + 1]);
    }
    return p;
  }
  // Of each element f(its value, that of each of `others`), rounded once.
  template <typename F, typename... P>
  __device__ __forceinline__ Pack map(F f, const P&... others) const {
    Pack p;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < V; ++i)
        p.words.w[i] =
            __float_as_uint(f(__uint_as_float(words.w[i]), __uint_as_float(others.words.w[i])...));
    } else if constexpr (V == 1) {
      p.words.w[0] =
          from_float<T>(f(to_float(T{words.w[0]}), to_float(T{others.words.w[0]})...)).bits;
    } else {
#pragma unroll
      for (int i = 0; i < V / 2; ++i)
        p.words.w[i] = pack<T>(f(unpack<T>(words.w[i]).low, unpack<T>(others.words.w[i]).low...),
                               f(unpack<T>(words.w[i]).high, unpack<T>(others.words.w[i]).high...));
    }
    return p;
  }
  __device__ __forceinline__ static Pack zero() {
    Pack p;
#pragma unroll
    for (auto& w : p.words.w) w = 0;
    return p;
  }
};

// Has pinned loads and copies that come before it issued before all that comes after. `always` is
// true, which the compiler must not know: over a branch to elsewhere it moves no such access. (A
// return is no branch: it becomes an exit with a predicate.)
__device__ __forceinline__ void loads_before(bool always) {
  if (!always) __trap();
}

// p must be a multiple of V * sizeof(T) bytes. Where not `inside`, nothing is read: zero.
template <Hint H, int V, bool Pinned = false, typename T>
__device__ __forceinline__ Pack<T, V> load_if(bool inside, const T* p,
                                              uint64 policy = policy_of<H>()) {
  Pack<T, V> pack = Pack<T, V>::zero();
  load_words<H, Pinned>(inside, p, pack.words, policy);
  return pack;
}
template <Hint H, int V, typename T>
__device__ __forceinline__ Pack<T, V> load(const T* p) {
  return load_if<H, V>(true, p);
}
template <Hint H, int V, typename T>
__device__ __forceinline__ void store(T* p, const Pack<T, V>& pack) {
  store_words<H>(p, pack.words);
}

// Begins to copy a pack to shared memory; where not `inside` nothing is copied. The thread finds it
// there after `wait_for_packs`. A load into registers the compiler puts off until shortly before
// its use, behind barriers, too; this it does not. What is copied must not change while the kernel
// runs, and packs of 2 bytes, and all before sm_80, come through registers.
template <Hint H, int V, typename T>
__device__ __forceinline__ void copy_if(bool inside, Pack<T, V>* shared, const T* p) {
  static_assert(H == Hint::keep || H == Hint::stream, "a copy is kept or not");
  constexpr int bytes = V * static_cast<int>(sizeof(T));
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (bytes >= 4) {
    const uint32 to = static_cast<uint32>(__cvta_generic_to_shared(shared));
    if constexpr (bytes == 16 && H == Hint::stream) {
      asm volatile(
          "{ .reg .pred q; setp.ne.u32 q, %3, 0; @q cp.async.cg.shared.global.L2::cache_hint [%0], "
          "[%1], 16, %2; }" ::"r"(to),
          "l"(p), "l"(policy_of<H>()), "r"(static_cast<uint32>(inside))
          : "memory");
    } else {
      asm volatile(
          "{ .reg .pred q; setp.ne.u32 q, %3, 0; @q cp.async.ca.shared.global [%0], [%1], %2; }" ::
              "r"(to),
          "l"(p), "n"(bytes), "r"(static_cast<uint32>(inside))
          : "memory");
    }
    return;
  }
#endif
  if (inside) *shared = load<H, V>(p);
}
// Until all copies that this thread has begun are there.
__device__ __forceinline__ void wait_for_packs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace kiln
