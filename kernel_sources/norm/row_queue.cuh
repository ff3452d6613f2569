// A cluster of CLUSTER blocks for each long row, and a queue of rows: a cluster takes the next row
// when it has read the one before. Each block holds a slice of the present row in registers while
// copies bring that of the next into shared memory, so that it reads and writes at once; weight and
// bias stay in shared memory for all rows.
//
// Why a queue: multiprocessors do not share the memory's bandwidth equally, so with rows dealt out
// beforehand the slowest decides when the kernel ends (a tenth later on an H200).
//
//   CLUSTER    blocks of a cluster
#pragma once

#include "kernel_sources/device/bulk.cuh"
#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(CLUSTER >= 1 && CLUSTER <= 16 && (CLUSTER & (CLUSTER - 1)) == 0,
              "a cluster has 1, 2, 4, 8 or 16 blocks");
static_assert(ROW_SIZE / VEC >= CLUSTER, "every block of the cluster could hold a part of the row");
static_assert(VEC * sizeof(DTYPE) == 16, "copies move multiples of 16 bytes");

namespace kiln::norm {

// How a block divides its slice: a warp takes neighbouring packs, `items` for each lane.
inline constexpr int row_packs = ROW_SIZE / VEC;
inline constexpr int slice = (row_packs + CLUSTER - 1) / CLUSTER;
inline constexpr int items = (slice + THREADS - 1) / THREADS;
inline constexpr int block_warps = THREADS / warp_size;
static_assert(items <= 16, "a thread holds at most 16 accesses of its row");

template <class F>
using QueuedRow =
    Held<F, DTYPE, VEC, items, row_packs % CLUSTER == 0 && slice % THREADS == 0 ? items : 0,
         warp_size, HAS_WEIGHT, HAS_BIAS>;
using RowPack = Pack<DTYPE, VEC>;

// Dynamic shared memory: the block's slice of the next row as it lies in memory, then for each
// thread its packs of weight and of bias.
__device__ __forceinline__ RowPack* next_row() {
  extern __shared__ __align__(128) uint4 lines_of_smem[];
  return reinterpret_cast<RowPack*>(lines_of_smem);
}
__device__ __forceinline__ RowPack* kept(int factor, int item) {
  return next_row() + ((1 + factor) * items + item) * THREADS + threadIdx.x;
}

// What a block knows of the turns of its cluster, by turns in one of two places. A place is used
// again two turns later: by then all blocks have been heard in the turn between, and each sent its
// moments there after its threads were done with this place (a barrier lies between).
struct QueueShared {
  Moments warps[2][block_warps];
  Moments slices[2][CLUSTER];
  int64 rows[2];                 // taken from the queue: that after the next
  Barrier known[2];              // both have come from all
  int64 first;                   // the first row taken
  Barrier begun;                 // it has come
  Barrier arrived[block_warps];  // copies of a warp's part of the next row
};
static_assert(sizeof(QueueShared) <= 1920, "the host reckons with 2048, what alignment takes too");

// A thread's part of the rows.
template <class F>
struct QueuedPart {
  const Operands<DTYPE>& call;
  QueueShared& shared;
  QueuedRow<F> held;
  int warp, lane, rank;
  int packs;   // of the warp
  bool holds;  // Hint::hold is meant: no two warps share a line

  __device__ __forceinline__ QueuedPart(const Operands<DTYPE>& operands, QueueShared& block)
      : call(operands), shared(block) {
    warp = static_cast<int>(threadIdx.x) / warp_size;
    lane = static_cast<int>(threadIdx.x) % warp_size;
    rank = static_cast<int>(cluster_rank());
    held.base = static_cast<int64>(rank) * slice;
    held.first = warp * items * warp_size + lane;
    held.end = row_packs - rank * slice < slice ? row_packs - rank * slice : slice;
    const int left = held.end - (held.first - lane);
    packs = left < 0 ? 0 : left < items * warp_size ? left : items * warp_size;
    holds = slice % 8 == 0 && begin_with_lines<F>(call);
  }

  // Has the copies bring a row, if there is one.
  __device__ __forceinline__ void copy(int64 row, int64 rows) const {
    if (lane != 0 || packs == 0 || row >= rows) return;
    const uint32 bytes = static_cast<uint32>(packs) * 16;
    shared.arrived[warp].arrive_expecting(bytes);
    bulk_copy<Hint(LOAD_HINT)>(next_row() + held.first,
                               call.x + row * call.x_stride + (held.base + held.first) * VEC, bytes,
                               shared.arrived[warp], holds);
  }
  // Waits for the copies and takes what they brought.
  __device__ __forceinline__ void take(uint32 parity) {
    if (packs > 0) shared.arrived[warp].wait(parity);
    const RowPack* const mine = next_row() + held.first;
#pragma unroll
    for (int i = 0; i < items; ++i)
      held.x[i] = held.inside(i) ? mine[i * warp_size] : RowPack::zero();
    __syncwarp();
  }

  __device__ __forceinline__ void let_go(int64 row, int64 rows) const {
    if (Hint(LOAD_HINT) != Hint::hold || !holds) return;
    if (!must_let_go(row, rows, ROW_SIZE * int64{sizeof(DTYPE)})) return;
    const DTYPE* const mine = call.x + row * call.x_stride + (held.base + held.first - lane) * VEC;
#pragma unroll 1
    for (int i = lane * 8; i < packs; i += 8 * warp_size) kiln::let_go(mine + i * VEC);
  }

  __device__ __forceinline__ void keep_factors() const {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (!held.inside(i)) continue;
      using Fs = typename QueuedRow<F>::Fs;
      Fs::each(call, held.pack(i),
               [&](const DTYPE* p, int place) { *kept(place, i) = kiln::load<Fs::hint, VEC>(p); });
    }
  }
  __device__ __forceinline__ typename QueuedRow<F>::Fs factors(int i) const {
    typename QueuedRow<F>::Fs f;
    f.read([&](int place) { return kept(place, i); });
    return f;
  }

  // The first row, as the first block's first thread took it.
  __device__ __forceinline__ int64 tell_first(int64 ticket) const {
    if (warp == 0) {
      if (lane == 0) shared.begun.arrive_expecting(sizeof(int64));
      ticket = __shfl_sync(all_lanes, ticket, 0);
      if (rank == 0 && lane < CLUSTER) send_to_cluster(&shared.first, shared.begun, lane, ticket);
    }
    shared.begun.wait(0);
    return shared.first;
  }

  // The moments of the row, and `row` becomes that after the next: `ticket` of the first block's
  // first thread.
  __device__ __forceinline__ Moments exchange(const RingPlace<2>& turn, int64 ticket, int64& row) {
    const Moments own = held.template moments<warp_size>(held.warp_count());
    if (lane == 0) shared.warps[turn.slot][warp] = own;
    __syncthreads();
    const Barrier& known = shared.known[turn.slot];
    if (warp == 0) {
      if (lane == 0)
        shared.known[turn.slot].arrive_expecting(CLUSTER * sizeof(Moments) + sizeof(int64));
      const Moments block = merge<F::centred, block_warps>(shared.warps[turn.slot]);
      ticket = __shfl_sync(all_lanes, ticket, 0);
      if (lane < CLUSTER) {
        send_to_cluster(&shared.slices[turn.slot][rank], known, lane,
                        make_float4(block.pivot, block.sum, block.square, block.count));
        if (rank == 0) send_to_cluster(&shared.rows[turn.slot], known, lane, ticket);
      }
    }
    known.wait(turn.parity);
    row = shared.rows[turn.slot];
    return merge<F::centred, CLUSTER>(shared.slices[turn.slot]);
  }
};

// Grid: clusters of CLUSTER blocks, no more than rows. `queue` is zero at first; null: each cluster
// takes the rows that lie the number of clusters apart.
template <class F>
__device__ __forceinline__ void queue_rows(const Operands<DTYPE>& call, int64 rows, uint64* queue) {
  __shared__ QueueShared shared;
  QueuedPart<F> part(call, shared);
  const int64 clusters = gridDim.x / CLUSTER;
  const bool takes = threadIdx.x == 0 && part.rank == 0;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (Barrier& one : shared.arrived) one.init(1);
    for (Barrier& one : shared.known) one.init(1);
    shared.begun.init(1);
    fence_barriers();
  }
  cluster_arrive();
  int64 at = blockIdx.x / CLUSTER;
  if (takes && queue != nullptr) at = static_cast<int64>(atomicAdd(queue, 2ull));
  cluster_wait();
  if (queue != nullptr) at = part.tell_first(at);
  part.copy(at, rows);
  int64 next = at + (queue != nullptr ? 1 : clusters);
  part.keep_factors();

  uint32 parity = 0;
#pragma unroll 1
  for (RingPlace<2> turn; at < rows; turn.next(), parity ^= 1) {
    part.take(parity);
    part.let_go(at, rows);
    part.copy(next, rows);
    int64 ticket = next + clusters;
    if (takes && queue != nullptr) ticket = static_cast<int64>(atomicAdd(queue, 1ull));
    int64 after;
    const Moments m = part.exchange(turn, ticket, after);
    part.held.template write<Hint(STORE_HINT)>(call.at(at, ROW_SIZE),
                                               normaliser<F::centred>(m, ROW_SIZE, EPS),
                                               [&](int i) { return part.factors(i); });
    at = next;
    next = after;
  }
}

}  // namespace kiln::norm
