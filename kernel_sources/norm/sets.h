#ifndef KILN_KERNEL_SOURCES_NORM_SETS_H_
#define KILN_KERNEL_SOURCES_NORM_SETS_H_

#include <kiln/kernel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

// How batch, instance and group normalization put threads on sets of elements that share their
// statistics (sets.cuh says what a set is). Each class here is one way; all are plain values.
namespace kiln {

// A call's sets, in elements. A set is `pieces` runs of `piece` elements, `stride` apart.
struct SetsShape {
  std::int64_t sets = 0, pieces = 0, piece = 0, stride = 0, set_stride = 0;
  std::int64_t groups = 0;  // sets after which weight and bias begin anew
  std::int64_t count() const { return pieces * piece; }
};

// The facts of a program: what its binary depends on besides the configuration. Each is a fact of
// an identity.
struct SetsFacts {
  DType dtype = DType::float16;   // of x and y
  DType factor = DType::float32;  // of weight and bias
  int vec = 1;                    // elements of an access
  bool per_piece = false;         // every piece has its own weight and bias
  bool contiguous = false;        // a set's pieces follow each other without gaps
  bool small = false;             // all positions of elements fit 31 bits
  bool has_weight = false;
  bool has_bias = false;
  bool has_running = false;     // moves running statistics
  bool has_statistics = false;  // may be asked for what is known of each set
};

// The host's copy of SetsCall in sets.cuh: both change together.
struct SetsCall {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t sets = 0, set_stride = 0;
  const void* weight = nullptr;
  const void* bias = nullptr;
  float inverse_count = 0, eps = 0;
  std::int64_t groups = 0, pieces = 0, piece = 0, stride = 0;
  float unbias = 0, momentum = 0;
  void* mean = nullptr;
  void* rstd = nullptr;
  void* variance = nullptr;
  void* running_mean = nullptr;
  void* running_var = nullptr;
};
static_assert(sizeof(SetsCall) == 15 * 8 + 4 * 4);

// The extents of `shape` in packs of `vec` elements.
SetsCall sets_call(const SetsShape& shape, int vec, double eps, double momentum);

// The widest access that neither crosses the end of a piece nor is misaligned.
int access_width(DType dtype, std::int64_t piece, int align);

// The program of kernel `name`, with the constants that all have.
Program sets_program(const char* name, const SetsFacts& facts, const Config& config);

// Sets that the registers of one block hold.
class WideSets {
 public:
  static constexpr std::int64_t kMostPacks = 8192;  // 8 accesses for each of 1024 threads
  WideSets(const SetsFacts& facts, std::int64_t packs) : facts_(facts), packs_(packs) {}
  std::vector<Program> programs(const Config& config) const;
  Config default_config(const DeviceFacts& facts) const;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const;
  LaunchShape shape(const Config& config, std::int64_t sets) const;

 private:
  Config with_threads(std::int64_t threads) const;
  SetsFacts facts_;
  std::int64_t packs_;  // of a set
};

// Sets of any size, a block for each, read twice.
class StreamSets {
 public:
  StreamSets(const SetsFacts& facts, std::int64_t packs) : facts_(facts), packs_(packs) {}
  std::vector<Program> programs(const Config& config) const;
  Config default_config(const DeviceFacts& facts) const;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const;
  LaunchShape shape(const Config& config, std::int64_t sets) const;

 private:
  SetsFacts facts_;
  std::int64_t packs_;
};

// The host's copy of SplitPlan in sets_split.cu: both change together.
struct SplitPlan {
  void* moments = nullptr;
  void* statistics = nullptr;
  void* done = nullptr;
  void* taken = nullptr;
  std::uint32_t sets = 0, parts = 0, lag = 0;
};

// The host's copy of HeldPlan in sets_held.cu: both change together.
struct HeldPlan {
  void* moments = nullptr;
  void* taken = nullptr;
  std::uint32_t parts = 0, total = 0;
};
HeldPlan held_plan(const Config& config, std::int64_t packs, std::int64_t sets, void* workspace);
// An error where the blocks could wait for each other for good: on a device with fewer
// multiprocessors than the configuration is for.
absl::StatusOr<LaunchShape> held_shape(const Config& config, const HeldPlan& plan,
                                       std::int64_t sm_count);

// Few and large sets, which all multiprocessors share: held on chip where the device has room for
// two (configurations with "slots"), else read twice by tasks of a queue.
class SplitSets {
 public:
  static constexpr std::int64_t kFewestElements = 65536;  // of a set
  static constexpr std::int64_t kMostSets = 1023;
  static constexpr std::int64_t kSmallestPart =
      1024;  // elements of a part in any configuration, at least
  explicit SplitSets(const SetsFacts& facts, std::int64_t packs) : facts_(facts), packs_(packs) {}
  // Whether parts can be counted in 32 bits.
  static bool countable(std::int64_t sets, std::int64_t count) {
    return sets * (count / kSmallestPart + 1) < (std::int64_t{1} << 30);
  }
  static bool serves(std::int64_t sets, std::int64_t count) {
    return sets <= kMostSets && count >= kFewestElements && countable(sets, count);
  }
  static std::size_t workspace_bytes(std::int64_t sets, std::int64_t count);
  std::vector<Program> programs(const Config& config) const;
  Config default_config(const DeviceFacts& facts) const;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const;
  SplitPlan plan(const Config& config, std::int64_t sets, std::int64_t blocks,
                 void* workspace) const;
  std::int64_t packs() const { return packs_; }

 private:
  SetsFacts facts_;
  std::int64_t packs_;
};

// A kernel that one way of these serves. `Way` is WideSets, StreamSets or SplitSets.
template <class Way>
class SetsKernel : public Kernel {
 public:
  SetsKernel(const SetsFacts& facts, std::int64_t packs, double eps, double momentum)
      : way_(facts, packs), vec_(facts.vec), eps_(eps), momentum_(momentum) {}
  std::vector<Program> programs(const DeviceFacts&, const Config& config) const override {
    return way_.programs(config);
  }
  Config default_config(const DeviceFacts& facts) const override {
    return way_.default_config(facts);
  }
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override {
    return way_.autotune_configs(facts);
  }

 protected:
  SetsCall call_of(const SetsShape& shape) const { return sets_call(shape, vec_, eps_, momentum_); }
  absl::Status run(const Stream& stream, const SetsCall& call, void* workspace) const {
    const Loaded& loaded = this->loaded(stream);
    if constexpr (std::is_same_v<Way, SplitSets>) {
      return loaded.config["slots"] > 0 ? run_held(stream, call, workspace)
                                        : run_queue(stream, call, workspace);
    } else {
      return launch(loaded, 0, stream, way_.shape(loaded.config, call.sets), call);
    }
  }

 private:
  static LaunchShape clearing(std::int64_t words) {
    return {.grid = {static_cast<std::uint32_t>((words + 255) / 256), 1, 1}, .block = {256, 1, 1}};
  }
  absl::Status run_held(const Stream& stream, const SetsCall& call, void* workspace) const {
    const Loaded& loaded = this->loaded(stream);
    const HeldPlan plan = held_plan(loaded.config, way_.packs(), call.sets, workspace);
    const absl::StatusOr<LaunchShape> shape =
        held_shape(loaded.config, plan, loaded.facts.sm_count);
    if (!shape.ok()) return shape.status();
    // The moments and, behind them, the counter.
    const std::int64_t words = std::int64_t{plan.total} + 1;
    absl::Status begun = launch(loaded, 1, stream, clearing(words), plan.moments, words);
    if (!begun.ok()) return begun;
    return launch(loaded, 0, stream, *shape, call, plan);
  }
  absl::Status run_queue(const Stream& stream, const SetsCall& call, void* workspace) const {
    const Loaded& loaded = this->loaded(stream);
    const std::int64_t blocks = loaded.facts.sm_count * loaded.config["blocks_per_sm"];
    const SplitPlan plan = way_.plan(loaded.config, call.sets, blocks, workspace);
    const std::int64_t counters = call.sets + 1;
    absl::Status begun = launch(loaded, 1, stream, clearing(counters), plan.taken, counters);
    if (!begun.ok()) return begun;
    const std::int64_t tasks = 2 * std::int64_t{plan.sets} * plan.parts;
    return launch(
        loaded, 0, stream,
        LaunchShape{.grid = {static_cast<std::uint32_t>(std::min(blocks, tasks)), 1, 1},
                    .block = {static_cast<std::uint32_t>(loaded.config["threads"]), 1, 1}},
        call, plan);
  }

  Way way_;
  int vec_;
  double eps_, momentum_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_SETS_H_
