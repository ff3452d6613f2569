// What every row normalization shares: which operands a form has, the part of a row that one thread
// holds, the statistics of a row and the formula. How threads are put on rows is in the other
// row_*.cuh. Formulas and the error bound are in README.md.
#pragma once

#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"
#include "kernel_sources/device/reduce.cuh"

namespace kiln::norm {

// A form is what differs between the ops.
template <bool Centred, bool Residual, bool Modulated, bool Gated>
struct Form {
  static constexpr bool centred = Centred;  // subtract the mean (LayerNorm), or not (RMSNorm)
  static constexpr bool residual =
      Residual;  // normalise x + residual, rounded, and return that sum too
  static constexpr bool modulated =
      Modulated;                        // scale and shift of x's size in place of weight and bias
  static constexpr bool gated = Gated;  // and the result times a gate of x's size
};
using LayerNorm = Form<true, false, false, false>;
using RmsNorm = Form<false, false, false, false>;
using FusedAddLayerNorm = Form<true, true, false, false>;
using FusedAddRmsNorm = Form<false, true, false, false>;
using AdaLayerNorm = Form<true, false, true, false>;
using AdaLayerNormZero = Form<true, false, true, true>;

// The tensors of a call, or of one row of it after `at`. Those that a form lacks stay null and are
// never touched. Outputs are contiguous; an input has the stride of its rows, in elements.
template <typename E>
struct Operands {
  const E* x = nullptr;
  const E* residual = nullptr;
  const E* scale = nullptr;
  const E* shift = nullptr;
  const E* gate = nullptr;
  const E* weight = nullptr;
  const E* bias = nullptr;
  E* y = nullptr;
  E* residual_out = nullptr;
  int64 x_stride = 0, residual_stride = 0, scale_stride = 0, shift_stride = 0, gate_stride = 0;

  __device__ __forceinline__ Operands at(int64 row, int64 row_size) const {
    Operands r = *this;
    r.x += row * x_stride;
    r.residual += row * residual_stride;
    r.scale += row * scale_stride;
    r.shift += row * shift_stride;
    r.gate += row * gate_stride;
    r.y += row * row_size;
    r.residual_out += row * row_size;
    return r;
  }
};

// Whether all rows that are normalised begin with a line of 128 bytes.
template <class F, typename E>
__device__ __forceinline__ bool begin_with_lines(const Operands<E>& call) {
  const auto low = [](const E* at, int64 stride) {
    return static_cast<uint32>(reinterpret_cast<uint64>(at)) |
           static_cast<uint32>(stride) * static_cast<uint32>(sizeof(E));
  };
  uint32 all = low(call.x, call.x_stride);
  if constexpr (F::residual) all |= low(call.residual, call.residual_stride);
  return all % 128 == 0;
}

// Sums over `count` elements: of x - pivot and of its square. Any pivot near the values keeps the
// sums free of cancellation; two sets with different pivots can be put together. A form that is not
// centred has the pivot 0.
struct __align__(16) Moments {
  float pivot, sum, square, count;
};

// Puts together the `Count` moments in shared memory, in every lane. Set 0 must not be empty.
// Moving all to its mean costs at most a factor `Count` of rounding error in the variance: a set's
// mean is that far off only where the variance itself is as large. Its pivot (not `ToMean`) may be
// further off, where it is one lane's (README.md says how far).
template <bool Centred, int Count, bool ToMean = true>
__device__ __forceinline__ Moments merge(const Moments* sets) {
  static_assert(Count >= 1 && Count <= warp_size, "a warp merges one set a lane");
  constexpr int lanes = round_up_to_power_of_two(Count);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  Moments m{0.f, 0.f, 0.f, 0.f};
  if (lanes == Count || lane < Count) m = sets[lane];
  if constexpr (!Centred) return {0.f, 0.f, lanes_sum<lanes>(m.square), 0.f};
  float pivot = sets[0].pivot;
  if constexpr (ToMean) pivot += __fdividef(sets[0].sum, sets[0].count);
  const float move = m.pivot - pivot;
  const bool any = m.count > 0.f;
  const float sum = any ? __fmaf_rn(m.count, move, m.sum) : 0.f;
  const float square = any ? __fmaf_rn(move, m.sum + sum, m.square) : 0.f;
  return {pivot, lanes_sum<lanes>(sum), lanes_sum<lanes>(square), lanes_sum<lanes>(m.count)};
}

// Turns a value of the row into a normalised one: (value - pivot - offset) * rstd.
struct Normaliser {
  float pivot, negative_offset, rstd;
  template <bool Centred>
  __device__ __forceinline__ float apply(float value) const {
    return Centred ? __fmaf_rn(value - pivot, rstd, negative_offset) : value * rstd;
  }
};

template <bool Centred>
__device__ __forceinline__ Normaliser normaliser(const Moments& m, double row_size, double eps) {
  const float inverse = static_cast<float>(1.0 / row_size);
  float variance = m.square * inverse;
  const float offset = m.sum * inverse;
  if (Centred) {
    variance = __fmaf_rn(-offset, offset, variance);
    variance = variance < 0.f ? 0.f : variance;  // rounding only; NaN stays
  }
  const float rstd = rsqrtf(variance + static_cast<float>(eps));
  return {m.pivot, -offset * rstd, rstd};
}

// Elements of the row at one pack: everything the formula needs besides the statistics.
template <class F, typename E, int V, bool Weight, bool Bias>
struct Factors {
  static constexpr bool scaled = F::modulated || Weight;
  static constexpr bool shifted = F::modulated || Bias;
  static constexpr int count = scaled + shifted + F::gated;
  static constexpr Hint hint = F::modulated ? Hint::stream : Hint::keep;
  Pack<E, V> scale, shift, gate;  // weight and bias, where the form is not modulated

  // Calls f(address, place) for each factor; places count from 0.
  template <typename G>
  __device__ __forceinline__ static void each(const Operands<E>& row, int64 pack, G f) {
    const int64 at = pack * V;
    if constexpr (scaled) f((F::modulated ? row.scale : row.weight) + at, 0);
    if constexpr (shifted) f((F::modulated ? row.shift : row.bias) + at, int{scaled});
    if constexpr (F::gated) f(row.gate + at, 2);
  }
  // The factor at a place.
  __device__ __forceinline__ Pack<E, V>& at(int place) {
    return F::gated && place == 2 ? gate : shifted && place == int{scaled} ? shift : scale;
  }
  __device__ __forceinline__ void load_from(const Operands<E>& row, int64 pack) {
    each(row, pack, [&](const E* p, int place) { at(place) = kiln::load<hint, V>(p); });
  }
  // To shared memory, at slot(place); and back.
  template <typename Slot>
  __device__ __forceinline__ static void copy_from(const Operands<E>& row, int64 pack, bool inside,
                                                   Slot slot) {
    each(row, pack, [&](const E* p, int place) { copy_if<hint, V>(inside, slot(place), p); });
  }
  template <typename Slot>
  __device__ __forceinline__ void read(Slot slot) {
#pragma unroll
    for (int place = 0; place < count; ++place) at(place) = *slot(place);
  }

  // The result for one pack of the row, rounded once.
  __device__ __forceinline__ Pack<E, V> apply(const Normaliser& n, const Pack<E, V>& x) const {
    const auto of_values = [&](float v, float a, float b, float g) {
      v = n.apply<F::centred>(v);
      if constexpr (scaled && shifted) {
        v = __fmaf_rn(v, a, b);
      } else {
        if constexpr (scaled) v *= a;
        if constexpr (shifted) v += b;
      }
      return F::gated ? v * g : v;
    };
    return x.map(of_values, scaled ? scale : x, shifted ? shift : x, F::gated ? gate : x);
  }
};

// x + residual, rounded to the dtype: what is returned as residual_out is what is normalised.
template <typename E, int V>
__device__ __forceinline__ Pack<E, V> rounded_sum(const Pack<E, V>& a, const Pack<E, V>& b) {
  return a.map([](float u, float v) { return u + v; }, b);
}

// The sum of f(value) over all elements of some packs. Four chains hide the latency of the
// additions.
struct Chains {
  float part[4] = {0.f, 0.f, 0.f, 0.f};
  __device__ __forceinline__ float total() const {
    return (part[0] + part[1]) + (part[2] + part[3]);
  }
};

// What one thread of a team holds of a row (or of a cluster block's slice of it): packs first,
// first + Stride, …, before `end`. The first `Whole` of its `Items` packs are known to be inside.
// Packs outside are zero and never counted.
template <class F, typename E, int V, int Items, int Whole, int Stride, bool Weight, bool Bias>
struct Held {
  using P = Pack<E, V>;
  using Fs = Factors<F, E, V, Weight, Bias>;
  static constexpr int items = Items;
  static constexpr bool modulated = F::modulated;
  int64 base;  // pack of the row at which the slice begins
  int first, end;
  P x[Items];
  P r[F::residual ? Items : 1];

  __device__ __forceinline__ bool inside(int i) const {
    return i < Whole || first + i * Stride < end;
  }
  __device__ __forceinline__ int64 pack(int i) const { return base + first + i * Stride; }

  // Issues the loads; nothing waits for them until `settle`. `holds`: whether Hint::hold is meant.
  template <Hint Load, bool Pinned = false>
  __device__ __forceinline__ void fetch(const Operands<E>& row, bool holds = true) {
    const uint64 policy = policy_of<Load>(holds);
#pragma unroll
    for (int i = 0; i < Items; ++i)
      x[i] = kiln::load_if<Load, V, Pinned>(inside(i), row.x + pack(i) * V, policy);
    if constexpr (F::residual) {
#pragma unroll
      for (int i = 0; i < Items; ++i)
        r[i] = kiln::load_if<Load, V, Pinned>(inside(i), row.residual + pack(i) * V, policy);
    }
  }
  // Once they have come: for the 128 bytes, or less, that 8 threads loaded, by the one that
  // `leads`.
  __device__ __forceinline__ bool leads() const { return first % 8 == 0; }
  template <Hint Load>
  __device__ __forceinline__ void let_go(const Operands<E>& row, bool when) const {
    if constexpr (Load == Hint::hold) {
      let_go_of(row.x, when);
      if constexpr (F::residual) let_go_of(row.residual, when);
    }
  }
  // Makes x the values to normalise; a form with a residual writes them here.
  template <Hint Store>
  __device__ __forceinline__ void settle(const Operands<E>& row, bool write) {
    if constexpr (F::residual) {
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        x[i] = rounded_sum(x[i], r[i]);
        if (write && inside(i)) kiln::store<Store, V>(row.residual_out + pack(i) * V, x[i]);
      }
    }
  }

  // Near the values of `Lanes` neighbouring threads: the mean of what the first of them holds,
  // which costs one exchange, or, where that is less than 8 values or many to add, the mean of all
  // (README.md says what that costs in digits, and what was measured).
  template <int Lanes>
  __device__ __forceinline__ float pivot(float count) const {
    constexpr bool of_first = Items * V >= 8 && Items <= (F::modulated ? 1 : 4);
    Chains plain;
#pragma unroll
    for (int i = 0; i < Items; ++i) x[i].each([&](int j, float v) { plain.part[j % 4] += v; });
    if constexpr (of_first) {
      int packs = Whole;
#pragma unroll
      for (int i = Whole; i < Items; ++i) packs += inside(i);
      const float values = static_cast<float>(packs > 0 ? packs * V : 1);
      return __shfl_sync(all_lanes, __fdividef(plain.total(), values), 0, Lanes);
    } else {
      const float total = lanes_sum<Lanes>(plain.total());
      return count > 0.f ? __fdividef(total, count) : 0.f;
    }
  }

  // The moments of what `Lanes` neighbouring threads hold together: `count` elements. Two passes
  // over the registers.
  template <int Lanes>
  __device__ __forceinline__ Moments moments(float count) const {
    if constexpr (!F::centred) {
      Chains square;
#pragma unroll
      for (int i = 0; i < Items; ++i)
        x[i].each(
            [&](int j, float v) { square.part[j % 4] = __fmaf_rn(v, v, square.part[j % 4]); });
      return {0.f, 0.f, lanes_sum<Lanes>(square.total()), count};
    } else {
      const float pivot = this->pivot<Lanes>(count);
      Chains sum, square;
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        if (!inside(i)) continue;
        x[i].each([&](int j, float v) {
          const float d = v - pivot;
          sum.part[j % 4] += d;
          square.part[j % 4] = __fmaf_rn(d, d, square.part[j % 4]);
        });
      }
      return {pivot, lanes_sum<Lanes>(sum.total()), lanes_sum<Lanes>(square.total()), count};
    }
  }

  // Elements that the warp of this thread holds.
  __device__ __forceinline__ float warp_count() const {
    if constexpr (Whole == Items) {
      return static_cast<float>(Items * warp_size * V);
    } else {
      int packs = Whole * warp_size;
      const int warp_first = first - first % warp_size;
#pragma unroll
      for (int i = Whole; i < Items; ++i) {
        const int left = end - warp_first - i * Stride;
        packs += left < 0 ? 0 : left > warp_size ? warp_size : left;
      }
      return static_cast<float>(packs * V);
    }
  }

  __device__ __forceinline__ void let_go_of(const E* row, bool when) const {
    constexpr bool lines_apart = Stride * V * sizeof(E) % 128 == 0;
    const E* const line = line_of(row + pack(0) * V);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      kiln::let_go(lines_apart ? line + i * Stride * V : line_of(row + pack(i) * V),
                   when && inside(i));
    }
  }

  // Writes the results, where `wanted`; `factors(i)` gives what belongs to pack i. They are made in
  // any case: a branch around that keeps the compiler from making the factors of several rows once.
  template <Hint Store, typename G>
  __device__ __forceinline__ void write(const Operands<E>& row, const Normaliser& n, G factors,
                                        bool wanted = true) const {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (!inside(i)) continue;
      const P y = factors(i).apply(n, x[i]);
      if (wanted) kiln::store<Store, V>(row.y + pack(i) * V, y);
    }
  }
};

// When what multiplies and shifts the result is loaded.
enum class Early : int {
  late = 0,       // after the statistics, pack by pack: fewest registers
  registers = 1,  // before the statistics' barrier; weight and bias once for all rows of the block
  shared = 2,     // the same, copied to shared memory; each thread reads back its own
};

// Bytes of dynamic shared memory that Early::shared needs: THREADS * Items packs for each factor.
template <class H, int Threads, Early When>
struct FactorStore {
  static constexpr bool fixed = !H::modulated;  // the same for all rows
  static constexpr bool held = When == Early::registers;
  static constexpr bool staged = When == Early::shared;
  typename H::Fs own[held ? H::items : 1];

  __device__ __forceinline__ static typename H::P* slot(int i, int which) {
    extern __shared__ uint4 dynamic_smem[];
    return reinterpret_cast<typename H::P*>(dynamic_smem) + (i * H::Fs::count + which) * Threads +
           threadIdx.x;
  }
  template <typename E>
  __device__ __forceinline__ void load(const H& h, const Operands<E>& row) {
#pragma unroll
    for (int i = 0; i < H::items; ++i) {
      if constexpr (staged)
        H::Fs::copy_from(row, h.pack(i), h.inside(i), [&](int which) { return slot(i, which); });
      if constexpr (held)
        if (h.inside(i)) own[i].load_from(row, h.pack(i));
    }
  }
  template <typename E>
  __device__ __forceinline__ void before_rows(const H& h, const Operands<E>& call) {
    if constexpr (fixed) load(h, call);
  }
  template <typename E>
  __device__ __forceinline__ void of_row(const H& h, const Operands<E>& row) {
    if constexpr (!fixed) load(h, row);
  }
  __device__ __forceinline__ void before_results() const {
    if constexpr (staged) wait_for_packs();
  }
  template <typename E>
  __device__ __forceinline__ typename H::Fs get(const H& h, const Operands<E>& row, int i) const {
    if constexpr (held) {
      return own[i];
    } else {
      typename H::Fs f;
      if constexpr (staged) {
        f.read([&](int which) { return slot(i, which); });
      } else {
        f.load_from(row, h.pack(i));
      }
      return f;
    }
  }
};

}  // namespace kiln::norm
