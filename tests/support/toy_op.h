#ifndef KILN_TESTS_SUPPORT_TOY_OP_H_
#define KILN_TESTS_SUPPORT_TOY_OP_H_

#include <kiln/kiln.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

// An op, a device type and a runtime for tests of dispatch. The device type "toy" is a real one on
// host memory: its facts are what a test sets, and it counts how often they are read. Its kernels
// have no programs, so nothing compiles.
namespace kiln::testing {

struct ToyCall {
  std::int64_t n = 0;
  DType dtype = DType::float32;
  std::int64_t mask = -1;  // bit i: implementation i of a random set serves the call
  KILN_CALL_SPEC(ToyCall, n, dtype, mask)
};

struct ToyFwdInterface : KernelInterface<ToyCall> {
  KILN_KERNEL_INTERFACE(ToyFwdInterface, forward)
  // y[i] = x[i] + what tells the implementations apart.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) const = 0;
};

struct ToyOtherCall {
  std::int64_t m = 0;
  double scale = 1;
  KILN_CALL_SPEC(ToyOtherCall, m, scale)
};

struct ToyOtherFwdInterface : KernelInterface<ToyOtherCall> {
  KILN_KERNEL_INTERFACE(ToyOtherFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream) const = 0;
};

// y = x + 1 by whatever serves it. x, y: [n] float32 or float64. `offset` is an execution parameter
// of no consequence in-tree.
class ToyFwdOp final : public OpOf<ToyFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"toy_fwd", ToyFwdInterface>,
                                      Named<"toy_other_fwd", ToyOtherFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "ToyFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float32, DType::float64}, .shape = "n"},
                {.name = "mask", .dtypes = {DType::float32}, .shape = "n", .optional = true}};
    s.params = {{"gain", ParamType::number, FieldValue(1.0)}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "n"}};
    return s;
  }
  explicit ToyFwdOp(OpInit init) : OpOf(std::move(init)) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) {
    const Tensor* inputs[] = {&x, nullptr};
    const Tensor* outputs[] = {&y};
    return call(stream, inputs, outputs);
  }

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    const TensorSpec& x = args.inputs[0]->spec;
    return std::vector<KernelCall>{{"toy_fwd", ToyCall{.n = x.shape[0], .dtype = x.dtype}}};
  }
  absl::Status execute(const CallView& call) override {
    return call.kernel<ToyFwdInterface>(0).forward(call.stream(), call.input(0), call.output(0));
  }
};

// The base of toy implementations: adds `amount` to every float32 element.
class ToyKernel : public Kernel, public ToyFwdInterface {
 public:
  static constexpr std::array<DeviceType, 1> devices{DeviceType::cpu()};
  explicit ToyKernel(float amount = 1) : amount_(amount) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&, const Tensor& x, const Tensor& y) const override {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      static_cast<float*>(y.data)[i] = static_cast<const float*>(x.data)[i] + amount_;
    }
    return absl::OkStatus();
  }

 private:
  float amount_;
};

// Host memory as a device type, by default the one named "cpu".
class ToySupport : public DeviceSupport {
 public:
  explicit ToySupport(std::vector<DeviceFacts> cards, DeviceType type = DeviceType::cpu())
      : cards_(std::move(cards)), type_(type) {}
  std::atomic<int> facts_read{0};
  std::atomic<bool> capturing{false};

  DeviceType type() const override { return type_; }
  absl::StatusOr<int> device_count() override { return static_cast<int>(cards_.size()); }
  absl::StatusOr<DeviceFacts> facts(int index) override {
    ++facts_read;
    if (index >= static_cast<int>(cards_.size())) return absl::NotFoundError("no such toy");
    return cards_[static_cast<std::size_t>(index)];
  }
  absl::StatusOr<std::string> target_for(const DeviceFacts&, bool) const override { return "toy"; }
  const Compiler& compiler() const override { return none_; }
  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int, std::string_view, std::string_view,
                                                    std::span<const std::string>) override {
    return absl::UnimplementedError("toys load nothing");
  }
  absl::Status prepare(int, void*, std::uint32_t) override { return absl::OkStatus(); }
  absl::Status launch(void*, const Stream&, const LaunchShape&, void**) override {
    return absl::UnimplementedError("toys launch nothing");
  }
  absl::StatusOr<bool> is_capturing(const Stream&) override { return capturing.load(); }
  absl::StatusOr<void*> allocate(const Stream&, std::size_t bytes) override {
    return std::malloc(bytes + 1);
  }
  absl::Status free(const Stream&, void* data) override {
    std::free(data);
    return absl::OkStatus();
  }
  absl::Status copy_to_device(const Stream&, void* to, const void* from, std::size_t n) override {
    std::memcpy(to, from, n);
    return absl::OkStatus();
  }
  absl::Status copy_to_host(const Stream& s, void* to, const void* from, std::size_t n) override {
    return copy_to_device(s, to, from, n);
  }
  absl::Status copy_on_device(const Stream& s, void* to, const void* from, std::size_t n) override {
    return copy_to_device(s, to, from, n);
  }
  absl::Status copy_strided(const Stream&, void* to, const Tensor& from) override {
    if (from.shape.size() != 1) return absl::UnimplementedError("toys copy one dimension");
    const std::size_t bytes = size_of(from.dtype);
    for (std::int64_t i = 0; i < from.shape[0]; ++i) {
      std::memcpy(static_cast<char*>(to) + static_cast<std::size_t>(i) * bytes,
                  static_cast<const char*>(from.data) +
                      static_cast<std::size_t>(i * from.strides[0]) * bytes,
                  bytes);
    }
    return absl::OkStatus();
  }
  absl::Status fill(const Stream&, void* to, std::uint8_t value, std::size_t n) override {
    std::memset(to, value, n);
    return absl::OkStatus();
  }
  absl::Status synchronize(const Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<Stream> create_stream(int index) override {
    return Stream{{type_, static_cast<std::uint8_t>(index)}, nullptr};
  }
  absl::Status destroy_stream(const Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<double> time(const Stream&, const std::function<absl::Status()>& body) override {
    KILN_RETURN_IF_ERROR(body());
    return 0.0;
  }

 private:
  class NoCompiler : public Compiler {
    absl::StatusOr<CompilerId> id() const override {
      return absl::FailedPreconditionError("toys compile nothing");
    }
    absl::StatusOr<CompileResult> compile(const CompileRequest&) const override {
      return absl::FailedPreconditionError("toys compile nothing");
    }
  };
  const std::vector<DeviceFacts> cards_;
  const DeviceType type_;
  const NoCompiler none_;
};

// A runtime of its own with the toy op and two cards: an SM90 and an SM80. No plugins, no disk.
struct ToyRuntime {
  explicit ToyRuntime(RuntimeOptions options = {},
                      std::vector<DeviceFacts> cards = {{90, 132, 232448, "h200"},
                                                        {80, 108, 166912, "a100"}})
      : runtime(without_plugins(std::move(options))) {
    Registry registry("in-tree");
    support = std::make_shared<ToySupport>(std::move(cards));
    registry.register_device_support(support);
    registry.add_op<ToyFwdOp>();
    failed = runtime.commit(std::move(registry));
  }
  static RuntimeOptions without_plugins(RuntimeOptions options) {
    options.load_installed_backends = false;
    return options;
  }
  template <class K>
  absl::Status add(const std::string& key, const std::string& origin = "test plugin") {
    return add(key, kernel_type<K>(), origin);
  }
  absl::Status add(const std::string& key, KernelType type,
                   const std::string& origin = "test plugin") {
    Registry registry(origin);
    registry.register_kernel_type("ToyFwdOp", key, std::move(type));
    return runtime.commit(std::move(registry));
  }
  absl::StatusOr<std::unique_ptr<ToyFwdOp>> op(OpOptions options = {}) {
    options.runtime = &runtime;
    return ToyFwdOp::create_from({}, options);
  }

  Runtime runtime;
  std::shared_ptr<ToySupport> support;
  absl::Status failed;
};

inline Stream toy_stream(int index = 0) {
  return Stream{Device{DeviceType::cpu(), static_cast<std::uint8_t>(index)}, nullptr};
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_TOY_OP_H_
