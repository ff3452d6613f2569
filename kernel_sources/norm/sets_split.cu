// Few and large sets: each is cut into parts of one tile, and blocks take tasks from one queue. A
// task reads one part, either to add its moments or, when the set's statistics are known, to
// normalise it. The queue lets the second read of a set follow its first by `lag` sets, so that it
// comes out of L2 and memory is read about once.
//
// No barrier of the grid, and no block needs another to be resident: a task waits only for tasks
// that come earlier in the queue, and those are taken by blocks that run. Results do not depend on
// who takes what: moments have a place for each part and are put together in the order of the
// parts, by whoever finishes the set's last part.
//
//   UNROLL     packs of a part that a thread holds: a part is THREADS * UNROLL packs
//   BLOCKS_PER_SM  blocks that one multiprocessor is to hold at once
#include "kernel_sources/norm/sets.cuh"

static_assert(UNROLL >= 1 && UNROLL <= 16, "packs of a part that a thread holds");
static_assert(BLOCKS_PER_SM >= 1 && BLOCKS_PER_SM <= 32,
              "blocks that one multiprocessor is to hold at once");

using namespace kiln;
using namespace kiln::norm;

// The host's copy is SplitPlan in sets.h: both change together.
struct SplitPlan {
  Moments* moments;           // [sets, parts]
  SetStatistics* statistics;  // [sets]
  uint32* done;   // [sets]: parts whose moments are there; parts + 1: the statistics are
  uint32* taken;  // tasks
  uint32 sets,
      parts;   // parts of a set; 2 * sets * parts fits 32 bits with room for one task a block
  uint32 lag;  // sets between the first and the second read of one; at most `sets`
};

namespace {

constexpr int part_packs = THREADS * UNROLL;

struct Task {
  uint32 set, part;
  bool second;  // normalise; else add moments
};

// Tasks in order: the first reads of `lag` sets; then, set by set, a first read and the second of
// the set `lag` before; then the last second reads.
__device__ __forceinline__ Task task_at(const SplitPlan& plan, uint32 number) {
  const uint32 lead = plan.lag * plan.parts;
  const uint32 both = (plan.sets - plan.lag) * plan.parts * 2;
  if (number >= lead && number < lead + both) {
    number -= lead;
    const uint32 turn = number / (plan.parts * 2), within = number % (plan.parts * 2);
    if (within < plan.parts) return {turn + plan.lag, within, false};
    return {turn, within - plan.parts, true};
  }
  const bool second = number >= lead;
  if (second) number -= lead + both;
  const uint32 set = number / plan.parts;
  return {second ? plan.sets - plan.lag + set : set, number % plan.parts, second};
}

__device__ __forceinline__ uint32 load_acquire(const uint32* p) {
  uint32 v;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_release(uint32* p, uint32 v) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ uint32 add_acquire_release(uint32* p) {
  uint32 old;
  asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(old) : "l"(p) : "memory");
  return old;
}
// Past L1, which is not coherent.
__device__ __forceinline__ Moments load_moments(const Moments* p) {
  Moments m;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(m.pivot), "=f"(m.sum), "=f"(m.square), "=f"(m.count)
               : "l"(p)
               : "memory");
  return m;
}

// Puts together the moments of all parts, by one warp. First the mean, then the squares around it,
// so that nothing depends on how far the parts' means lie apart.
__device__ __forceinline__ Moments merge_parts(const Moments* parts, uint32 count) {
  const uint32 lane = threadIdx.x % warp_size;
  const float first = load_moments(parts).pivot;
  float sum = 0.f, total = 0.f;
#pragma unroll 1
  for (uint32 i = lane; i < count; i += warp_size) {
    const Moments m = load_moments(parts + i);
    sum += __fmaf_rn(m.count, m.pivot - first, m.sum);
    total += m.count;
  }
  total = lanes_sum<warp_size>(total);
  const float pivot = first + lanes_sum<warp_size>(sum) / total;
  float rest = 0.f, square = 0.f;
#pragma unroll 1
  for (uint32 i = lane; i < count; i += warp_size) {
    const Moments m = load_moments(parts + i);
    const float move = m.pivot - pivot;
    const float moved = __fmaf_rn(m.count, move, m.sum);
    rest += moved;
    square += __fmaf_rn(move, m.sum + moved, m.square);
  }
  return {pivot, lanes_sum<warp_size>(rest), lanes_sum<warp_size>(square), total};
}

// Adds the moments of one part; whoever adds a set's last also makes its statistics.
__device__ __forceinline__ void add_moments(const SetsCall& call, const SplitPlan& plan,
                                            const Task& task, const Tile<UNROLL>& tile,
                                            Moments* warps) {
  const Moments own = tile.moments();
  if (threadIdx.x % warp_size == 0) warps[threadIdx.x / warp_size] = own;
  __syncthreads();
  if (threadIdx.x >= warp_size) return;
  const Moments m = merge<true, THREADS / warp_size>(warps);
  uint32 before = 0;
  if (threadIdx.x == 0) {
    plan.moments[static_cast<int64>(task.set) * plan.parts + task.part] = m;
    before = add_acquire_release(plan.done + task.set);
  }
  before = __shfl_sync(all_lanes, before, 0);
  if (before + 1 != plan.parts) return;
  __syncwarp();
  __threadfence();  // the other lanes read what other blocks wrote
  const SetStatistics s = statistics(
      call, merge_parts(plan.moments + static_cast<int64>(task.set) * plan.parts, plan.parts));
  if (threadIdx.x != 0) return;
  publish(call, task.set, s, Running(call, task.set, true));
  plan.statistics[task.set] = s;
  store_release(plan.done + task.set, plan.parts + 1);
}

__device__ __forceinline__ SetStatistics wait_for_statistics(const SplitPlan& plan, uint32 set) {
  while (load_acquire(plan.done + set) != plan.parts + 1) __nanosleep(64);
  const Moments raw = load_moments(reinterpret_cast<const Moments*>(plan.statistics + set));
  return {raw.pivot, raw.sum, raw.square, raw.count};
}

}  // namespace

// Launched before `sets_split`: `count` counters back to 0.
extern "C" __global__ void __launch_bounds__(256) sets_split_begin(uint32* counters, int64 count) {
  const int64 i = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) counters[i] = 0;
}

// Grid: as many blocks as run at once; any number is right.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sets_split(SetsCall call, SplitPlan plan) {
  __shared__ Moments warps[2][THREADS / warp_size];
  __shared__ uint32 next[2];
  const uint32 tasks = 2 * plan.sets * plan.parts;
  const int64 packs = call.pieces * call.piece;
  if (threadIdx.x == 0) next[0] = atomicAdd(plan.taken, 1u);
  __syncthreads();
  for (int turn = 0;; turn ^= 1) {
    const uint32 number = next[turn];
    if (number >= tasks) return;
    // The task after this one. That it is taken early delays nobody for good: waiting goes towards
    // the queue's start only.
    uint32 after = 0;
    if (threadIdx.x == 0) after = atomicAdd(plan.taken, 1u);
    const Task task = task_at(plan, number);
    const int64 first = static_cast<int64>(task.part) * part_packs;
    const int64 start = start_of(call, task.set);
    const Walk<int> walk(call, first + threadIdx.x);
    Tile<UNROLL> tile(packs - first < part_packs ? static_cast<int>(packs - first) : part_packs);
    if (task.second) {
      tile.fetch<Hint::stream>(call.x + start, walk);
      const SetFactors factors(call, task.set);
      const SetStatistics s = wait_for_statistics(plan, task.set);
      give(tile, call.y + start, walk.again(), s, factors);
    } else {
      tile.fetch<Hint::keep>(call.x + start, walk);
      add_moments(call, plan, task, tile, warps[turn]);
    }
    if (threadIdx.x == 0) next[turn ^ 1] = after;
    __syncthreads();
  }
}
