#ifndef KILN_BENCH_GPU_KILN_CALL_H_
#define KILN_BENCH_GPU_KILN_CALL_H_

#include <kiln/kiln.h>

#include "bench/gpu/workloads.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::bench {

// A workload's op, made ready to be called through the public interface. One thread at a time.
class KilnCall {
 public:
  // `only`: the one implementation that may serve; empty: dispatch decides.
  static absl::StatusOr<std::unique_ptr<KilnCall>> prepare(Runtime& runtime,
                                                           const Workload& workload, int device,
                                                           const std::string& only = "");

  // Memory of the caller's, in the signature's order; null for what is not passed. It outlives the
  // calls. InvalidArgument: not one for every input and output.
  absl::Status bind(std::span<void* const> inputs, std::span<void* const> outputs);
  // Memory of its own, on the stream's device, inputs filled with random values.
  absl::Status bind_own(const Stream& stream);

  // The inputs of another call of the same workload, and outputs of its own, all bits set.
  absl::Status bind_beside(const KilnCall& other, const Stream& stream);

  absl::Status call(const Stream& stream);

  // Implementations that dispatch could choose for it on this device, the chosen one first.
  absl::StatusOr<std::vector<std::string>> implementations();
  // Builds what a call needs, without one.
  absl::Status build(const Stream& stream);
  // After `build` or a call: the configurations that tuning would try besides the one in force, of
  // the one kernel that served it; and putting one in force.
  absl::StatusOr<std::vector<Config>> configs() const;
  absl::Status use(Runtime& runtime, const Config& config);
  // Those that are bound; nullopt: not passed.
  const std::vector<std::optional<Tensor>>& outputs() const { return outputs_; }
  // After a call: which implementations served it, in which configuration.
  std::string served_by() const;

 private:
  KilnCall(DeviceSupport& support, Device device) : support_(support), device_(device) {}
  absl::Status allocate(const std::vector<std::optional<ArgSpec>>& args, const Stream& stream,
                        std::vector<void*>& data);
  absl::Status fill(const Stream& stream, const TensorParam& param, const Tensor& tensor,
                    std::uint64_t seed);

  DeviceSupport& support_;
  Device device_;
  std::unique_ptr<Op> op_;
  internal::ParsedCall call_;
  std::vector<std::optional<Tensor>> inputs_, outputs_;
  std::vector<const Tensor*> input_views_, output_views_;
  std::vector<OwnedTensor> owned_;
};

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_KILN_CALL_H_
