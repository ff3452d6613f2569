// Moves the running statistics of instance norm towards the batch's: the mean of the instances'
// means, and of their unbiased variances. A thread for each channel; the order of additions is the
// batch's.
#include "kernel_sources/device/dtype.cuh"

static_assert(THREADS >= 32 && THREADS <= 1024, "threads of a block");

using kiln::int64;

// mean, variance: [batch, channels]. Grid: THREADS channels a block.
extern "C" __global__ void __launch_bounds__(THREADS)
    instance_norm_track(const float* mean, const float* variance, float* running_mean,
                        float* running_var, int64 batch, int64 channels, float momentum) {
  const int64 channel = static_cast<int64>(blockIdx.x) * THREADS + threadIdx.x;
  if (channel >= channels) return;
  double means = 0, variances = 0;
  for (int64 b = 0; b < batch; ++b) {
    means += mean[b * channels + channel];
    variances += variance[b * channels + channel];
  }
  const double part = 1.0 / static_cast<double>(batch);
  const float keep = 1.f - momentum;
  running_mean[channel] =
      __fmaf_rn(momentum, static_cast<float>(means * part), keep * running_mean[channel]);
  running_var[channel] =
      __fmaf_rn(momentum, static_cast<float>(variances * part), keep * running_var[channel]);
}
