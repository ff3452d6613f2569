#ifndef KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_CHANNEL_H_
#define KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_CHANNEL_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Short instances, a warp for each and a block for all of a channel, so that the launch that makes
// the statistics moves the running ones.
class InstanceNormChannelKernel final : public Kernel, public InstanceNormTrainFwdInterface {
 public:
  static constexpr auto preferred_over = keys("instance_norm_wide");
  static Refusal refusal(const BatchNormCall& c);
  static Entry<InstanceNormChannelKernel> entry_for(const BatchNormCall& c);

  // `instances`: a power of two, no less than the batch.
  InstanceNormChannelKernel(DType dtype, int vec, std::int64_t packs, std::int64_t instances,
                            double eps, double momentum, bool has_weight, bool has_bias)
      : facts_{.dtype = dtype,
               .factor = dtype,
               .vec = vec,
               .contiguous = true,
               .small = true,
               .has_weight = has_weight,
               .has_bias = has_bias,
               .has_running = true},
        packs_(packs),
        instances_(instances),
        eps_(eps),
        momentum_(momentum) {}
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                       const Tensor& y, void* workspace) const override;

 private:
  SetsFacts facts_;
  std::int64_t packs_, instances_;
  double eps_, momentum_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_CHANNEL_H_
