#ifndef KILN_KERNEL_SOURCES_NORM_BATCH_NORM_KERNEL_H_
#define KILN_KERNEL_SOURCES_NORM_BATCH_NORM_KERNEL_H_

#include <kiln/ops/batch_norm.h>
#include <kiln/ops/group_norm.h>
#include <kiln/ops/instance_norm.h>

#include "sets.h"

#include <utility>

// What the kernels of one interface share, whatever way they put threads on sets.
namespace kiln {

int access_width(const BatchNormCall& call);
int access_width(const GroupNormCall& call);

// Whether positions of so many elements fit 31 bits.
constexpr bool are_small(std::int64_t elements) { return elements < std::int64_t{1} << 31; }

// Entries whose identity is what the binary and the launches need: never how many channels or items
// a call has, unless the way of working follows from it.
template <class K>
Entry<K> batch_norm_entry(const BatchNormCall& c) {
  const int vec = access_width(c);
  return Entry<K>(c.dtype, vec, c.batch == 1, are_small(c.channels * c.per_channel()),
                  c.per_channel() / vec, c.eps, c.momentum, c.has_weight, c.has_bias, c.tracks);
}
template <class K>
Entry<K> instance_norm_entry(const BatchNormCall& c) {
  const int vec = access_width(c);
  return Entry<K>(c.dtype, vec, are_small(c.channels * c.per_channel()), c.spatial / vec, c.eps,
                  c.momentum, c.has_weight, c.has_bias, c.tracks);
}
template <class K>
Entry<K> group_norm_entry(const GroupNormCall& c) {
  const int vec = access_width(c);
  return Entry<K>(c.dtype, vec, are_small(c.batch * c.groups * c.per_group()), c.per_group() / vec,
                  c.groups, c.eps, c.has_weight, c.has_bias);
}

// Batch norm: a set is a channel.
template <class Way>
class BatchNormTrainKernel : public SetsKernel<Way>, public BatchNormTrainFwdInterface {
 public:
  BatchNormTrainKernel(DType dtype, int vec, bool contiguous, bool small, std::int64_t packs,
                       double eps, double momentum, bool has_weight, bool has_bias, bool tracks)
      : SetsKernel<Way>({.dtype = dtype,
                         .factor = DType::float32,
                         .vec = vec,
                         .contiguous = contiguous,
                         .small = small,
                         .has_weight = has_weight,
                         .has_bias = has_bias,
                         .has_running = tracks,
                         .has_statistics = true},
                        packs, eps, momentum) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                       const Tensor& y, const Tensor& mean, const Tensor& rstd,
                       void* workspace) const override {
    const std::int64_t batch = x.shape[0], channels = x.shape[1], spatial = x.shape[2];
    SetsCall call =
        this->call_of({channels, batch, spatial, channels * spatial, spatial, channels});
    call.x = x.data;
    call.y = y.data;
    call.weight = weight.data;
    call.bias = bias.data;
    call.mean = mean.data;
    call.rstd = rstd.data;
    call.running_mean = running_mean.data;
    call.running_var = running_var.data;
    return this->run(stream, call, workspace);
  }
};

// Moves instance norm's running statistics; the second kernel of each training entry, used where a
// call has them.
class InstanceNormTrack : public Kernel {
 public:
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status move(const Stream& stream, const void* means, const void* variances,
                    const Tensor& running_mean, const Tensor& running_var, std::int64_t batch,
                    std::int64_t channels, double momentum) const;
};

// Instance norm: a set is a channel of one batch item.
template <class Way>
class InstanceNormTrainKernel : public SetsKernel<Way>, public InstanceNormTrainFwdInterface {
 public:
  InstanceNormTrainKernel(DType dtype, int vec, bool small, std::int64_t packs, double eps,
                          double momentum, bool has_weight, bool has_bias, bool tracks)
      : SetsKernel<Way>({.dtype = dtype,
                         .factor = dtype,
                         .vec = vec,
                         .contiguous = true,
                         .small = small,
                         .has_weight = has_weight,
                         .has_bias = has_bias,
                         .has_statistics = tracks},  // for InstanceNormTrack
                        packs, eps, momentum),
        momentum_(momentum) {}
  std::vector<Kernel*> kernels() override { return {this, &track_}; }
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                       const Tensor& y, void* workspace) const override {
    const std::int64_t batch = x.shape[0], channels = x.shape[1], spatial = x.shape[2];
    const std::int64_t sets = batch * channels;
    SetsCall call = this->call_of({sets, 1, spatial, spatial, spatial, channels});
    call.x = x.data;
    call.y = y.data;
    call.weight = weight.data;
    call.bias = bias.data;
    if (running_mean.data == nullptr) return this->run(stream, call, workspace);
    // The instances' own statistics lie behind what the way of working needs.
    auto* const own = static_cast<std::byte*>(workspace) + tracked_offset(sets, spatial);
    call.mean = own;
    call.variance = own + sets * 4;
    absl::Status status = this->run(stream, call, workspace);
    if (!status.ok()) return status;
    return track_.move(stream, call.mean, call.variance, running_mean, running_var, batch, channels,
                       momentum_);
  }
  static std::int64_t tracked_offset(std::int64_t sets, std::int64_t spatial) {
    if (!SplitSets::serves(sets, spatial)) return 0;
    return (static_cast<std::int64_t>(SplitSets::workspace_bytes(sets, spatial)) + 15) / 16 * 16;
  }

 private:
  double momentum_;
  InstanceNormTrack track_;
};

// Group norm: a set is a group of channels of one batch item, and each channel is a piece of it.
template <class Way>
class GroupNormKernel : public SetsKernel<Way>, public GroupNormFwdInterface {
 public:
  GroupNormKernel(DType dtype, int vec, bool small, std::int64_t packs, std::int64_t groups,
                  double eps, bool has_weight, bool has_bias)
      : SetsKernel<Way>({.dtype = dtype,
                         .factor = dtype,
                         .vec = vec,
                         .per_piece = true,
                         .contiguous = true,
                         .small = small,
                         .has_weight = has_weight,
                         .has_bias = has_bias},
                        packs, eps, 0),
        groups_(groups) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y, void* workspace) const override {
    const std::int64_t channels = x.shape[1] / groups_, spatial = x.shape[2];
    SetsCall call = this->call_of(
        {x.shape[0] * groups_, channels, spatial, spatial, channels * spatial, groups_});
    call.x = x.data;
    call.y = y.data;
    call.weight = weight.data;
    call.bias = bias.data;
    return this->run(stream, call, workspace);
  }

 private:
  std::int64_t groups_;
};

Refusal refuse_wide(std::int64_t count, int vec);
Refusal refuse_split(std::int64_t sets, std::int64_t count, std::string_view what);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_BATCH_NORM_KERNEL_H_
