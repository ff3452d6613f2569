#ifndef KILN_CALL_VIEW_H_
#define KILN_CALL_VIEW_H_

#include <kiln/device.h>
#include <kiln/signature.h>
#include <kiln/tensor.h>

#include <cstddef>
#include <span>

namespace kiln::inline v1 {

// What `Op::execute` works with: the call's tensors, in signature order, and the entries that serve
// its kernel calls, in the order of the plan. Borrowed for the call.
class CallView {
 public:
  CallView(const Stream& stream, std::span<const Tensor* const> inputs,
           std::span<const Tensor* const> outputs, std::span<const void* const> kernels,
           const ParamValues& execution_params)
      : stream_(stream),
        inputs_(inputs),
        outputs_(outputs),
        kernels_(kernels),
        execution_params_(execution_params) {}
  const Stream& stream() const { return stream_; }
  // REQUIRES: the i-th input was passed.
  const Tensor& input(std::size_t i) const { return *inputs_[i]; }
  bool has_input(std::size_t i) const { return inputs_[i] != nullptr; }
  const Tensor* optional_input(std::size_t i) const { return inputs_[i]; }
  const Tensor& output(std::size_t i) const { return *outputs_[i]; }
  // The entry of the i-th kernel call. REQUIRES: I is that call's interface.
  template <class I>
  const I& kernel(std::size_t i) const {
    return *static_cast<const I*>(kernels_[i]);
  }
  const ParamValues& execution_params() const { return execution_params_; }
  std::span<const Tensor* const> inputs() const { return inputs_; }
  std::span<const Tensor* const> outputs() const { return outputs_; }
  // The same call served by `kernels`.
  CallView with_kernels(std::span<const void* const> kernels) const {
    return CallView(stream_, inputs_, outputs_, kernels, execution_params_);
  }

 private:
  const Stream& stream_;
  std::span<const Tensor* const> inputs_;
  std::span<const Tensor* const> outputs_;
  std::span<const void* const> kernels_;
  const ParamValues& execution_params_;
};

}  // namespace kiln::inline v1

#endif  // KILN_CALL_VIEW_H_
