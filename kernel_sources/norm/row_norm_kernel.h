#ifndef KILN_KERNEL_SOURCES_NORM_ROW_NORM_KERNEL_H_
#define KILN_KERNEL_SOURCES_NORM_ROW_NORM_KERNEL_H_

#include <kiln/kernel.h>
#include <kiln/ops/layer_norm_call.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What all kernels that normalise rows share: the facts that change their binaries, programs, and
// launches.
namespace kiln {

// One of the ops of the family, as far as its kernels are concerned.
struct RowForm {
  std::string_view name;  // stem of the block kernel: "layer_norm"
  bool centred = true;    // subtracts the mean
  bool fused = false;     // reads a residual and writes the sum
  bool adaptive = false;  // scale and shift have x's size
  bool gated = false;     // and a gate
};

// The facts that change a binary. How far rows lie apart is none: strides are launch parameters.
struct RowFacts {
  DType dtype = DType::float16;
  std::int64_t n = 1;
  int vec = 1;  // elements of an access
  double eps = 0;
  bool has_weight = false;
  bool has_bias = false;

  std::int64_t bytes() const { return n * size_of(dtype); }
  std::int64_t packs() const { return n / vec; }
  std::int64_t access_bytes() const { return std::int64_t{vec} * size_of(dtype); }
  std::int64_t factors() const { return std::int64_t{has_weight} + std::int64_t{has_bias}; }
};

// The widest access, in elements, that the alignment and the length of rows allow. REQUIRES: the
// dtype is one the family serves, and 1 <= n.
int vec_of(const LayerNormCall& call);

// Refuses a call whose rows bulk copies cannot bring.
Refusal refuse_narrow(const LayerNormCall& call);

// The entry of implementation K: its identity is RowFacts, in order.
template <class K>
Entry<K> row_norm_entry(const LayerNormCall& call) {
  return Entry<K>(call.dtype, call.n, vec_of(call), call.eps, call.has_weight, call.has_bias);
}

// Configurations hold the constants of constants.cuh and of the placement in lower case, and
// `rows_per_block`, which is a launch choice and reaches no program.
class RowNormKernel : public Kernel {
 public:
  // What no kernel of the family serves.
  static Refusal refusal(const LayerNormCall& call);

  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  // The default first, then what differs from it in one choice, and in one more together with the
  // placement's first.
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;

 protected:
  // `suffix` and `header` name the placement: "_warp" and "row_warp"; `needs` are what its header
  // includes besides what all do. Borrowed for the kernel's life.
  struct Placement {
    std::string_view suffix;
    std::string_view header;
    std::array<std::string_view, 2> needs{};
  };
  RowNormKernel(const RowForm& form, const RowFacts& facts, const Placement& placement)
      : form_(form), facts_(facts), placement_(placement) {}

  // The program of this form on `placement`.
  Program program_of(const Placement& placement, const Config& config) const;

  const RowForm& form() const { return form_; }
  const RowFacts& row() const { return facts_; }

  // Blocks for `rows` rows, in 64 bits.
  virtual std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const = 0;
  // Threads of a block.
  virtual std::int64_t threads(const Config& config) const { return config["threads"]; }
  // Dynamic shared memory of a block.
  virtual std::int64_t smem_bytes(const Config& /*config*/) const { return 0; }
  // Values to try for names of the default configuration, first the name that acts on all others;
  // what is not listed stays.
  virtual std::vector<std::pair<std::string, std::vector<std::int64_t>>> choices(
      const DeviceFacts& facts) const = 0;
  // Whether a program can be made of `config`: the static_asserts of the device code, and the
  // shared memory there is.
  virtual bool can_run(const Config& config, const DeviceFacts& facts) const;
  // Accesses that one thread holds of a row; 0 for a placement that holds none.
  virtual std::int64_t held_packs(const Config& /*config*/) const { return 0; }

  // Enqueues the kernel. `args` are its parameters, the number of rows among them.
  template <class... A>
  absl::Status launch_rows(const Stream& stream, std::int64_t rows, const A&... args) const {
    const Loaded& here = loaded(stream);
    absl::StatusOr<LaunchShape> shape = launch_shape(here, rows);
    if (!shape.ok()) return shape.status();
    return launch(here, 0, stream, *shape, args...);
  }
  // The same for an interface with a workspace, which most placements do without.
  template <class... A>
  absl::Status launch_rows(const Stream& stream, void* /*workspace*/, std::int64_t rows,
                           const A&... args) const {
    return launch_rows(stream, rows, args...);
  }

  // Factors of a row: weight and bias, or scale, shift and gate.
  std::int64_t factors() const {
    return form_.adaptive ? 2 + std::int64_t{form_.gated} : facts_.factors();
  }
  // Shared memory that holds them where config["early"] is 2.
  std::int64_t factor_bytes(const Config& config) const;

 private:
  absl::StatusOr<LaunchShape> launch_shape(const Loaded& here, std::int64_t rows) const;

  const RowForm& form_;
  const RowFacts facts_;
  const Placement placement_;
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// Threads in whole warps.
constexpr std::int64_t whole_warps(std::int64_t threads) { return ceil_div(threads, 32) * 32; }

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROW_NORM_KERNEL_H_
