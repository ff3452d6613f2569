#ifndef KILN_TESTS_TUNING_TUNING_FIXTURE_H_
#define KILN_TESTS_TUNING_TUNING_FIXTURE_H_

#include <kiln/kiln.h>

#include "tests/support/temp_dir.h"
#include "tests/tuning/tuning_backend.h"

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace kiln::inline v1 {
inline void PrintTo(const Config& config, std::ostream* out) { *out << to_string(config); }
}  // namespace kiln::inline v1

namespace kiln::testing {

// The configuration that wins where nothing is trapped.
inline const Config kBest{{"work", 1}, {"kind", 0}, {"twin", 0}};
inline const Config kDefault{{"work", 8}, {"kind", 0}, {"twin", 0}};

// A runtime with the CPU backend and the op for tests of tuning, on a cache folder that may be
// shared with others.
inline std::unique_ptr<Runtime> tuning_runtime(const std::string& cache_dir,
                                               RuntimeOptions options = {}) {
  options.cache_dir = cache_dir;
  options.backend_path = {KILN_CPU_BACKEND_FILE};
  options.load_installed_backends = false;
  auto runtime = std::make_unique<Runtime>(std::move(options));
  runtime->load_backends();
  Registry registry("tuning tests");
  absl::Status status = tuning_backend::fill(registry);
  if (status.ok()) status = runtime->commit(std::move(registry));
  if (!status.ok()) std::abort();
  return runtime;
}

inline std::unique_ptr<tuning_backend::TuningToyFwdOp> tuning_op(Runtime& runtime,
                                                                 std::int64_t traps = 0) {
  OpOptions options;
  options.runtime = &runtime;
  auto op = tuning_backend::TuningToyFwdOp::create_from({{"traps", FieldValue(traps)}}, options);
  if (!op.ok()) std::abort();
  return *std::move(op);
}

inline const Stream kHostStream{{DeviceType::cpu(), 0}, nullptr};

// Tensors of a caller, and a call with them.
struct CallerTensors {
  explicit CallerTensors(std::int64_t count = 4096)
      : n(count),
        x(static_cast<std::size_t>(count), 3.0F),
        y(static_cast<std::size_t>(count), -1.0F),
        state(static_cast<std::size_t>(count), 7.0F),
        lengths{static_cast<std::int32_t>(count)} {}
  Tensor view(void* data, DType dtype, std::int64_t count) const {
    return Tensor::contiguous(data, kHostStream.device, dtype, {count});
  }
  absl::Status call(Op& op, bool with_state = false, bool with_lengths = false) {
    const Tensor x_view = view(x.data(), DType::float32, n);
    const Tensor y_view = view(y.data(), DType::float32, n);
    const Tensor state_view = view(state.data(), DType::float32, n);
    const Tensor lengths_view = view(lengths.data(), DType::int32, 1);
    const Tensor* inputs[] = {&x_view, with_state ? &state_view : nullptr,
                              with_lengths ? &lengths_view : nullptr};
    const Tensor* outputs[] = {&y_view};
    return op.call(kHostStream, inputs, outputs);
  }
  std::int64_t n;
  std::vector<float> x, y, state;
  std::vector<std::int32_t> lengths;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_TUNING_TUNING_FIXTURE_H_
