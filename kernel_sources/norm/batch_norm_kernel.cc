#include "batch_norm_kernel.h"

namespace kiln {

int access_width(const BatchNormCall& call) {
  return access_width(call.dtype, call.spatial, call.align);
}
int access_width(const GroupNormCall& call) {
  return access_width(call.dtype, call.spatial, call.align);
}

Refusal refuse_wide(std::int64_t count, int vec) {
  if (count / vec <= WideSets::kMostPacks) return serves;
  return refuse("serves what the registers of one block hold, at most ", WideSets::kMostPacks,
                " accesses: got ", count, " elements in accesses of ", vec);
}

Refusal refuse_split(std::int64_t sets, std::int64_t count, std::string_view what) {
  if (sets > SplitSets::kMostSets)
    return refuse("serves at most ", SplitSets::kMostSets, " ", what, ", got ", sets);
  if (count < SplitSets::kFewestElements)
    return refuse("serves ", what, " of at least ", SplitSets::kFewestElements, " elements, got ",
                  count);
  if (!SplitSets::countable(sets, count))
    return refuse("serves less than 2^30 parts of ", SplitSets::kSmallestPart, " elements, got ",
                  sets, " ", what, " of ", count);
  return serves;
}

std::vector<Program> InstanceNormTrack::programs(const DeviceFacts&, const Config&) const {
  return {Program{.source = "kernel_sources/norm/instance_norm_track.cu",
                  .headers = {"kernel_sources/device/dtype.cuh"},
                  .kernels = {"instance_norm_track"},
                  .constants = {{"THREADS", std::int64_t{64}}}}};
}

absl::Status InstanceNormTrack::move(const Stream& stream, const void* means, const void* variances,
                                     const Tensor& running_mean, const Tensor& running_var,
                                     std::int64_t batch, std::int64_t channels,
                                     double momentum) const {
  const LaunchShape shape{.grid = {static_cast<std::uint32_t>((channels + 63) / 64), 1, 1},
                          .block = {64, 1, 1}};
  return launch(loaded(stream), 0, stream, shape, means, variances, running_mean.data,
                running_var.data, batch, channels, static_cast<float>(momentum));
}

}  // namespace kiln
