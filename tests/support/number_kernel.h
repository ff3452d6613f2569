#ifndef KILN_TESTS_SUPPORT_NUMBER_KERNEL_H_
#define KILN_TESTS_SUPPORT_NUMBER_KERNEL_H_

#include <kiln/kiln.h>

#include "tests/support/toy_op.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

// For tests of many identities: an implementation of the toy op whose identity is the call's
// length, which is the constant NUMBER that its program is compiled with.
namespace kiln::testing {

template <bool on_host>
class NumberKernel final : public Kernel, public ToyFwdInterface {
 public:
  static constexpr std::array<DeviceType, 1> devices{on_host ? DeviceType::cpu()
                                                             : DeviceType::cuda()};
  static inline std::atomic<int> alive{0};

  static Entry<NumberKernel> entry_for(const ToyCall& call) { return Entry<NumberKernel>(call.n); }
  explicit NumberKernel(std::int64_t n) : n_(n) { ++alive; }
  ~NumberKernel() override { --alive; }
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override {
    return {{.source = "tests/number", .kernels = {"number"}, .constants = {{"NUMBER", n_}}}};
  }
  absl::Status forward(const Stream& stream, const Tensor&, const Tensor& y) const override {
    return launch(loaded(stream), 0, stream, {}, y.data, 0);
  }

 private:
  const std::int64_t n_;
};

// A runtime with the toy op, that kernel of `source`, and `support` as well where it is given.
template <bool on_host>
absl::StatusOr<std::unique_ptr<Runtime>> number_runtime(
    RuntimeOptions options, std::string_view source,
    std::shared_ptr<DeviceSupport> support = nullptr) {
  options.load_installed_backends = false;
  auto runtime = std::make_unique<Runtime>(std::move(options));
  Registry registry("number tests");
  if (support != nullptr) registry.register_device_support(std::move(support));
  registry.add_op<ToyFwdOp>();
  registry.register_kernel_type("ToyFwdOp", "number", kernel_type<NumberKernel<on_host>>());
  registry.add_sources({{"tests/number", source}});
  KILN_RETURN_IF_ERROR(runtime->commit(std::move(registry)));
  return runtime;
}

inline absl::StatusOr<std::unique_ptr<ToyFwdOp>> toy_op_of(Runtime& runtime) {
  OpOptions options;
  options.runtime = &runtime;
  return ToyFwdOp::create_from({}, options);
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_NUMBER_KERNEL_H_
