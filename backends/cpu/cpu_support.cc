#include "cpu_support.h"

#include "host_image.h"
#include "instruction_set.h"
#include "kernels/block.hpp"
#include "thread_pool.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace kiln::cpu {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr std::int64_t kUnknownL2 = 1 << 20;
// Chunks of blocks for each thread: few enough that taking one is rare, many enough that a thread
// which is held up leaves its share to the others.
constexpr std::uint64_t kChunksPerThread = 8;

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  // Only with more processors than the set has room for.
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::int64_t l2_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : kUnknownL2;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Scratch memory of the running thread; kept, since the next block wants it too.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(data_); }
  // Null when there is no memory.
  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      std::free(data_);
      data_ = std::aligned_alloc(kAlignment, round_up(bytes));
      bytes_ = data_ == nullptr ? 0 : bytes;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// One launch, as the pool's threads see it.
struct Launch {
  KilnCpuKernel kernel;
  const LaunchShape& shape;
  void** args;
  std::uint64_t blocks;
  std::uint64_t chunk_blocks;
  std::atomic<bool> out_of_memory{false};

  void run_chunk(std::uint64_t chunk) noexcept {
    KilnCpuBlock block{{shape.grid[0], shape.grid[1], shape.grid[2]},
                       {0, 0, 0},
                       {shape.block[0], shape.block[1], shape.block[2]},
                       shape.smem_bytes,
                       nullptr};
    if (shape.smem_bytes > 0) {
      thread_local Scratch scratch;
      block.scratch = scratch.at_least(shape.smem_bytes);
      if (block.scratch == nullptr) {
        out_of_memory.store(true, std::memory_order_relaxed);
        return;
      }
    }
    const std::uint64_t end = std::min(blocks, (chunk + 1) * chunk_blocks);
    for (std::uint64_t i = chunk * chunk_blocks; i < end; ++i) {
      const std::uint64_t rest = i / block.grid[0];
      block.index[0] = static_cast<std::uint32_t>(i % block.grid[0]);
      block.index[1] = static_cast<std::uint32_t>(rest % block.grid[1]);
      block.index[2] = static_cast<std::uint32_t>(rest / block.grid[1]);
      kernel(&block, args);
    }
  }
};

absl::Status check_index(int index) {
  if (index == 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("cpu: the device must be cpu:0, the only one: got index %d", index));
}

absl::Status check_stream(const Stream& stream) {
  if (stream.handle == nullptr && stream.device.type == DeviceType::cpu()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "cpu: the stream must be a null handle on the cpu, which has no streams: got %p on %s",
      stream.handle, to_string(stream.device)));
}

absl::Status check_scratch(std::uint32_t bytes, std::int64_t budget) {
  if (bytes <= budget) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "cpu: the scratch memory of a block must be at most %d bytes: got %d", budget, bytes));
}

absl::Status check_shape(const LaunchShape& shape) {
  if (shape.cluster != std::array<std::uint32_t, 3>{1, 1, 1}) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cpu launch: the cluster must be 1 x 1 x 1, since blocks cannot work "
                        "together: got %d x %d x %d",
                        shape.cluster[0], shape.cluster[1], shape.cluster[2]));
  }
  if (shape.cooperative) {
    return absl::InvalidArgumentError(
        "cpu launch: must not be cooperative, since blocks run one after the other");
  }
  const auto blocks = static_cast<unsigned __int128>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  if (blocks >> 62 != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cpu launch: the grid must have less than 2^62 blocks: got %d x %d x %d",
                        shape.grid[0], shape.grid[1], shape.grid[2]));
  }
  return absl::OkStatus();
}

// A copy of nothing may have null pointers, which memcpy may not.
absl::Status copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  if (bytes == 0) return absl::OkStatus();
  if (to == nullptr || from == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cpu copy: both pointers must be set: got %p and %p for %d bytes", to, from, bytes));
  }
  std::memmove(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace

struct CpuSupport::Machine {
  explicit Machine(int threads)
      : facts{.arch = 0,
              .sm_count = usable_threads(),
              .smem_budget = l2_bytes(),
              .calibration = std::string(detect_instruction_set())},
        pool(threads > 0 ? threads : facts.sm_count) {}
  const DeviceFacts facts;
  ThreadPool pool;
};

CpuSupport::CpuSupport(CpuSupportOptions options)
    : options_(std::move(options)), compiler_(make_host_compiler(options_.compiler)) {}
CpuSupport::~CpuSupport() = default;

CpuSupport::Machine& CpuSupport::machine() {
  std::call_once(once_, [this] { machine_ = std::make_unique<Machine>(options_.threads); });
  return *machine_;
}

absl::StatusOr<DeviceFacts> CpuSupport::facts(int index) {
  KILN_RETURN_IF_ERROR(check_index(index));
  return machine().facts;
}

absl::StatusOr<std::string> CpuSupport::target_for(const DeviceFacts& facts,
                                                   bool /*arch_specific*/) const {
  if (std::find(kInstructionSets.begin(), kInstructionSets.end(), facts.calibration) !=
      kInstructionSets.end()) {
    return facts.calibration;
  }
  std::string known;
  for (std::string_view name : kInstructionSets)
    known += (known.empty() ? "" : ", ") + std::string(name);
  return absl::InvalidArgumentError(absl::StrFormat(
      "cpu: the calibration must be an instruction set that is known (%s): got '%s'", known,
      facts.calibration));
}

absl::StatusOr<std::unique_ptr<LoadedImage>> CpuSupport::load(
    int index, std::string_view kind, std::string_view image,
    std::span<const std::string> kernels) {
  KILN_RETURN_IF_ERROR(check_index(index));
  if (kind != "host_object") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cpu load: the image must be of kind host_object: got '%s'", std::string(kind)));
  }
  return load_host_image(image, kernels);
}

absl::Status CpuSupport::prepare(int index, void* /*function*/, std::uint32_t smem_bytes) {
  KILN_RETURN_IF_ERROR(check_index(index));
  return check_scratch(smem_bytes, machine().facts.smem_budget);
}

absl::Status CpuSupport::launch(void* function, const Stream& stream, const LaunchShape& shape,
                                void** args) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  KILN_RETURN_IF_ERROR(check_shape(shape));
  if (function == nullptr)
    return absl::InvalidArgumentError(
        "cpu launch: the function must be one of a loaded image: got null");
  Machine& here = machine();
  KILN_RETURN_IF_ERROR(check_scratch(shape.smem_bytes, here.facts.smem_budget));
  const std::uint64_t blocks = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (blocks == 0) return absl::OkStatus();
  const std::uint64_t wanted_chunks =
      static_cast<std::uint64_t>(here.pool.threads()) * kChunksPerThread;
  const std::uint64_t chunk_blocks = (blocks + wanted_chunks - 1) / wanted_chunks;
  Launch launch{.kernel = reinterpret_cast<KilnCpuKernel>(function),
                .shape = shape,
                .args = args,
                .blocks = blocks,
                .chunk_blocks = chunk_blocks};
  here.pool.run(
      static_cast<std::int64_t>((blocks + chunk_blocks - 1) / chunk_blocks),
      [](void* context, std::int64_t chunk) noexcept {
        static_cast<Launch*>(context)->run_chunk(static_cast<std::uint64_t>(chunk));
      },
      &launch);
  if (!launch.out_of_memory.load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "cpu launch: must get %d bytes of scratch memory for a thread", shape.smem_bytes));
}

absl::StatusOr<bool> CpuSupport::is_capturing(const Stream& /*stream*/) { return false; }

absl::StatusOr<void*> CpuSupport::allocate(const Stream& stream, std::size_t bytes) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  const bool fits = bytes <= SIZE_MAX - kAlignment;
  void* const data =
      fits ? std::aligned_alloc(kAlignment, std::max(round_up(bytes), kAlignment)) : nullptr;
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cpu: must get memory from the system: wanted %d bytes", bytes));
  }
  return data;
}

absl::Status CpuSupport::free(const Stream& stream, void* data) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  std::free(data);
  return absl::OkStatus();
}

absl::Status CpuSupport::copy_to_device(const Stream& stream, void* device, const void* host,
                                        std::size_t bytes) {
  return copy(stream, device, host, bytes);
}

absl::Status CpuSupport::copy_to_host(const Stream& stream, void* host, const void* device,
                                      std::size_t bytes) {
  return copy(stream, host, device, bytes);
}

absl::Status CpuSupport::copy_on_device(const Stream& stream, void* to, const void* from,
                                        std::size_t bytes) {
  return copy(stream, to, from, bytes);
}

absl::Status CpuSupport::fill(const Stream& stream, void* device, std::uint8_t value,
                              std::size_t bytes) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  if (bytes == 0) return absl::OkStatus();
  if (device == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cpu fill: the pointer must be set: got null for %d bytes", bytes));
  }
  std::memset(device, value, bytes);
  return absl::OkStatus();
}

absl::Status CpuSupport::synchronize(const Stream& stream) { return check_stream(stream); }

absl::StatusOr<Stream> CpuSupport::create_stream(int index) {
  KILN_RETURN_IF_ERROR(check_index(index));
  return Stream{{DeviceType::cpu(), 0}, nullptr};
}

absl::Status CpuSupport::destroy_stream(const Stream& stream) { return check_stream(stream); }

absl::StatusOr<double> CpuSupport::time(const Stream& stream,
                                        const std::function<absl::Status()>& body) {
  KILN_RETURN_IF_ERROR(check_stream(stream));
  const auto start = std::chrono::steady_clock::now();
  KILN_RETURN_IF_ERROR(body());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace kiln::cpu
