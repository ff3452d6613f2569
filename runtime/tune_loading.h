#ifndef KILN_RUNTIME_TUNE_LOADING_H_
#define KILN_RUNTIME_TUNE_LOADING_H_

#include <kiln/device_support.h>
#include <kiln/kernel.h>
#include <kiln/tune.h>

#include "runtime/runtime_impl.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::internal {

// The stream of a sweep that launches what is loaded at the sweep's index, and back.
constexpr Stream sweep_stream(const Stream& real) {
  return {{real.device.type, static_cast<std::uint8_t>(real.device.index + kSweepIndex)},
          real.handle};
}
constexpr Device real_device(const Device& device) {
  const bool is_sweep = device.index >= kSweepIndex && device.index < kSweepIndex + kMaxDevices;
  return is_sweep ? Device{device.type, static_cast<std::uint8_t>(device.index - kSweepIndex)}
                  : device;
}

// What candidates launch through: the real device, by the sweep's streams; remembers the largest
// launch, from which occupancy follows. Candidates only launch, so all else is refused. Of one
// thread.
class SweepLaunches final : public DeviceSupport {
 public:
  explicit SweepLaunches(DeviceSupport& real) : real_(real) {}
  std::uint32_t block_threads = 0, smem_bytes = 0;  // of the largest launch

  absl::Status launch(void* function, const Stream& stream, const LaunchShape& shape,
                      void** args) override;

  DeviceType type() const override { return real_.type(); }
  absl::StatusOr<int> device_count() override { return real_.device_count(); }
  absl::StatusOr<DeviceFacts> facts(int index) override { return real_.facts(index); }
  absl::StatusOr<std::string> target_for(const DeviceFacts& facts, bool specific) const override {
    return real_.target_for(facts, specific);
  }
  const Compiler& compiler() const override { return real_.compiler(); }
  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int, std::string_view, std::string_view,
                                                    std::span<const std::string>) override;
  absl::Status prepare(int, void*, std::uint32_t) override;
  absl::StatusOr<bool> is_capturing(const Stream&) override { return false; }
  absl::StatusOr<void*> allocate(const Stream&, std::size_t) override;
  absl::Status free(const Stream&, void*) override;
  absl::Status copy_to_device(const Stream&, void*, const void*, std::size_t) override;
  absl::Status copy_to_host(const Stream&, void*, const void*, std::size_t) override;
  absl::Status copy_on_device(const Stream&, void*, const void*, std::size_t) override;
  absl::Status fill(const Stream&, void*, std::uint8_t, std::size_t) override;
  absl::Status synchronize(const Stream&) override;
  absl::StatusOr<Stream> create_stream(int) override;
  absl::Status destroy_stream(const Stream&) override;
  absl::StatusOr<double> time(const Stream&, const std::function<absl::Status()>&) override;

 private:
  DeviceSupport& real_;
};

// A candidate on its way: being compiled behind the caller's back.
struct CandidateBuild {
  std::vector<Program> programs;
  std::vector<std::shared_future<absl::StatusOr<jit::Built>>> built;
};

// Begins to compile `config`. ResourceExhausted, before anything is compiled, when a program wants
// more shared memory than the device has.
absl::StatusOr<CandidateBuild> begin_build(Runtime::Impl& runtime, DeviceSupport& support,
                                           const DeviceFacts& facts, const Kernel& kernel,
                                           const Config& config, CompilePolicy policy);
// Waits for it, at most until `deadline`, and puts what the compiler reports into `candidate`.
absl::Status end_build(const CandidateBuild& build, absl::Time deadline, TuneCandidate& candidate);
// What rules a candidate out by the compiler's report alone; empty: nothing does.
KILN_EXPORT std::string ruled_out(const TuneCandidate& candidate, const TuneCandidate& by_default,
                                  const DeviceFacts& facts);
// Loads what was built, for launches through `launches`. Not shared: it goes with its sweep.
absl::StatusOr<std::unique_ptr<Loaded>> load_candidate(const CandidateBuild& build,
                                                       DeviceSupport& support,
                                                       DeviceSupport& launches, int index,
                                                       const DeviceFacts& facts,
                                                       const Config& config);

// Warps that fit on a multiprocessor at once, of those it can hold: by registers, shared memory and
// threads. -1 for a device type without archs, or where registers are not known; 0: not one block
// fits.
KILN_EXPORT double occupancy_of(const DeviceFacts& facts, std::int64_t registers,
                                std::int64_t smem_bytes, std::uint32_t block_threads);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_LOADING_H_
