#ifndef KILN_KERNEL_SOURCES_NORM_INFER_MAP_H_
#define KILN_KERNEL_SOURCES_NORM_INFER_MAP_H_

#include <kiln/kernel.h>

#include <vector>

namespace kiln {

// A map of x by the running statistics of its channels: what batch and instance norm share in
// inference.
class InferMap : public Kernel {
 public:
  // `factor` is the dtype of weight and bias; `rounded`: statistics are rounded to x's dtype first.
  InferMap(DType dtype, DType factor, bool rounded, int vec, double eps)
      : dtype_(dtype), factor_(factor), rounded_(rounded), vec_(vec), eps_(eps) {}
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;

 protected:
  // x, y: [B, C, S]; the others [C], weight and bias may have null data.
  absl::Status run(const Stream& stream, const Tensor& x, const Tensor& mean, const Tensor& var,
                   const Tensor& weight, const Tensor& bias, const Tensor& y) const;

 private:
  DType dtype_, factor_;
  bool rounded_;
  int vec_;
  double eps_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INFER_MAP_H_
