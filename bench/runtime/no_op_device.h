#ifndef KILN_BENCH_RUNTIME_NO_OP_DEVICE_H_
#define KILN_BENCH_RUNTIME_NO_OP_DEVICE_H_

#include <kiln/kiln.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

// An op of the shape of layer normalization on a device type whose launch does nothing: what is
// left of a call is the host's part of it.
namespace kiln::bench {

struct RowsCall {
  std::int64_t rows = 0, n = 0;
  DType dtype = DType::float16;
  bool weight = false, bias = false;
  int align = 16;
  double eps = 1e-5;
  KILN_CALL_SPEC(RowsCall, rows, n, dtype, weight, bias, align, eps)
};

struct RowsFwdInterface : KernelInterface<RowsCall> {
  KILN_KERNEL_INTERFACE(RowsFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const Tensor& y) const = 0;
};

// x, y: [rows, n]; weight, bias: [n].
class RowsFwdOp final : public OpOf<RowsFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"rows_fwd", RowsFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "RowsFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float16}, .shape = "rows, n"},
                {.name = "weight", .dtypes = {DType::float16}, .shape = "n"},
                {.name = "bias", .dtypes = {DType::float16}, .shape = "n"}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "rows, n"}};
    return s;
  }
  explicit RowsFwdOp(OpInit init) : OpOf(std::move(init)) {}
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y) {
    const Tensor* inputs[] = {&x, &weight, &bias};
    const Tensor* outputs[] = {&y};
    return call(stream, inputs, outputs);
  }

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    const TensorSpec& x = args.inputs[0]->spec;
    return std::vector<KernelCall>{
        {"rows_fwd", RowsCall{.rows = x.shape[0], .n = x.shape[1], .dtype = x.dtype}}};
  }
  absl::Status execute(const CallView& call) override {
    return call.kernel<RowsFwdInterface>(0).forward(call.stream(), call.input(0), call.input(1),
                                                    call.input(2), call.output(0));
  }
};

class RowsKernel final : public Kernel, public RowsFwdInterface {
 public:
  static constexpr std::array<DeviceType, 1> devices{DeviceType::cpu()};
  explicit RowsKernel(const RowsCall&) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override {
    return {{.source = "bench/rows", .kernels = {"rows"}}};
  }
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y) const override {
    const LaunchShape shape{.grid = {static_cast<std::uint32_t>(x.shape[0]), 1, 1},
                            .block = {256, 1, 1}};
    return launch(loaded(stream), 0, stream, shape, x.data, weight.data, bias.data, y.data,
                  x.shape[0], x.shape[1], 1e-5f);
  }
};

class NoOpDevice final : public DeviceSupport {
 public:
  DeviceType type() const override { return DeviceType::cpu(); }
  absl::StatusOr<int> device_count() override { return 1; }
  absl::StatusOr<DeviceFacts> facts(int) override { return DeviceFacts{90, 132, 232448, "h200"}; }
  absl::StatusOr<std::string> target_for(const DeviceFacts&, bool) const override { return "none"; }
  const Compiler& compiler() const override { return compiler_; }
  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int, std::string_view, std::string_view,
                                                    std::span<const std::string>) override {
    return std::make_unique<Image>();
  }
  absl::Status prepare(int, void*, std::uint32_t) override { return absl::OkStatus(); }
  absl::Status launch(void* function, const Stream&, const LaunchShape&, void** args) override;
  absl::StatusOr<bool> is_capturing(const Stream&) override { return false; }
  absl::StatusOr<void*> allocate(const Stream&, std::size_t) override {
    return absl::UnimplementedError("no memory");
  }
  absl::Status free(const Stream&, void*) override { return absl::OkStatus(); }
  absl::Status copy_to_device(const Stream&, void*, const void*, std::size_t) override {
    return absl::OkStatus();
  }
  absl::Status copy_to_host(const Stream&, void*, const void*, std::size_t) override {
    return absl::OkStatus();
  }
  absl::Status copy_on_device(const Stream&, void*, const void*, std::size_t) override {
    return absl::OkStatus();
  }
  absl::Status fill(const Stream&, void*, std::uint8_t, std::size_t) override {
    return absl::OkStatus();
  }
  absl::Status synchronize(const Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<Stream> create_stream(int) override { return Stream{{type(), 0}, nullptr}; }
  absl::Status destroy_stream(const Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<double> time(const Stream&, const std::function<absl::Status()>& body) override {
    KILN_RETURN_IF_ERROR(body());
    return 0.0;
  }

 private:
  struct Image final : LoadedImage {
    std::span<void* const> functions() const override { return {&function, 1}; }
    void* function = const_cast<Image*>(this);
  };
  class NoCompiler final : public Compiler {
    absl::StatusOr<CompilerId> id() const override { return CompilerId{"none", "1", ""}; }
    absl::StatusOr<CompileResult> compile(const CompileRequest&) const override {
      return CompileResult{.kind = "none", .image = "none", .kernels = {{.name = "rows"}}};
    }
  };
  const NoCompiler compiler_;
};

// A runtime with nothing else in it, and its op.
struct NoOpRuntime {
  NoOpRuntime() : runtime({.jobs = 0, .load_installed_backends = false}) {
    Registry registry("bench");
    registry.register_device_support(support = std::make_shared<NoOpDevice>());
    registry.add_op<RowsFwdOp>();
    registry.register_kernel_type("RowsFwdOp", "rows", kernel_type<RowsKernel>());
    static const SourceTable sources{{"bench/rows", "nothing"}};
    registry.add_sources(sources);
    if (!runtime.commit(std::move(registry)).ok()) std::abort();
    OpOptions options;
    options.runtime = &runtime;
    auto made = RowsFwdOp::create_from({}, options);
    if (!made.ok()) std::abort();
    op = *std::move(made);
  }
  Runtime runtime;
  std::shared_ptr<NoOpDevice> support;
  std::unique_ptr<RowsFwdOp> op;
};

}  // namespace kiln::bench

#endif  // KILN_BENCH_RUNTIME_NO_OP_DEVICE_H_
