// What an author of an op and its implementations writes. As it stands it compiles; with one BAD_…
// defined it must not, and the compiler must say the sentence that CMakeLists.txt holds for it.
#include <kiln/kiln.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace {

using namespace kiln;  // NOLINT(google-build-using-namespace): one short file

#ifdef BAD_NO_FIELD_LIST
struct RowCall {
  std::int64_t n = 0;
  DType dtype = DType::float32;
  Where where{};
};
#else
struct RowCall {
  std::int64_t n = 0;
  DType dtype = DType::float32;
#if defined(BAD_FORGOTTEN_FIELD)
  bool causal = false;
#elif defined(BAD_NOT_AN_AGGREGATE)
  RowCall() {}
#elif defined(BAD_MUTABLE_FIELD)
  std::vector<std::int64_t> lengths = {};
#elif defined(BAD_POINTER_FIELD)
  const char* lengths = nullptr;
#endif
#if defined(BAD_MUTABLE_FIELD) || defined(BAD_POINTER_FIELD)
  KILN_CALL_SPEC(RowCall, n, dtype, lengths)
#else
  KILN_CALL_SPEC(RowCall, n, dtype)
#endif
};
#endif

struct RowFwdInterface : KernelInterface<RowCall> {
  KILN_KERNEL_INTERFACE(RowFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) const = 0;
};

struct ColumnCall {
  std::int64_t m = 0;
  KILN_CALL_SPEC(ColumnCall, m)
};
struct ColumnFwdInterface : KernelInterface<ColumnCall> {
  KILN_KERNEL_INTERFACE(ColumnFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream, const Tensor& x) const = 0;
};
struct StrangeFwdInterface : KernelInterface<ColumnCall> {
  KILN_KERNEL_INTERFACE(StrangeFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream) const = 0;
};

class RowFwdOp final : public OpOf<RowFwdOp> {
 public:
  using Interfaces =
      kiln::Interfaces<Named<"row_fwd", RowFwdInterface>, Named<"column_fwd", ColumnFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "RowFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float32}, .shape = "n"}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "n"}};
    return s;
  }
  explicit RowFwdOp(OpInit init) : OpOf(std::move(init)) {}

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    RowCall call;
    call.n = args.inputs[0]->spec.shape[0];
    return std::vector<KernelCall>{{"row_fwd", call}};
  }
  absl::Status execute(const CallView& call) override {
    return call.kernel<RowFwdInterface>(0).forward(call.stream(), call.input(0), call.output(0));
  }
};

class RowKernel : public Kernel, public RowFwdInterface {
 public:
#if defined(BAD_IDENTITY_WITHOUT_CONSTRUCTOR)
  static Entry<RowKernel> entry_for(const RowCall& call) {
    return Entry<RowKernel>(call.n, call.dtype, true);
  }
#elif defined(BAD_UNSTABLE_FACT)
  static Entry<RowKernel> entry_for(const RowCall&) { return Entry<RowKernel>("a name"); }
  explicit RowKernel(const char*) {}
#else
  static Entry<RowKernel> entry_for(const RowCall& call) {
    return Entry<RowKernel>(call.n, call.dtype);
  }
#endif
  RowKernel(std::int64_t n, DType dtype) : n_(n), dtype_(dtype) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) const override {
    const Loaded& f = loaded(stream);
    [[maybe_unused]] const std::vector<int> list;
#if defined(BAD_TENSOR_AS_ARGUMENT)
    return launch(f, 0, stream, LaunchShape{}, x, y.data);
#elif defined(BAD_ARGUMENT_THAT_OWNS)
    return launch(f, 0, stream, LaunchShape{}, x.data, y.data, list);
#else
    return launch(f, 0, stream, LaunchShape{}, x.data, y.data, n_, dtype_);
#endif
  }

 private:
  const std::int64_t n_;
  const DType dtype_;
};

// A second implementation that inherits the first one's entry_for would be built as the first.
class ShortRowKernel final : public RowKernel {
 public:
  static constexpr auto preferred_over = keys("row");
  static Refusal refusal(const RowCall& call) {
    if (call.n > 256) return refuse("serves rows of at most 256, got ", call.n);
    return RowKernel::refusal(call);
  }
#ifndef BAD_INHERITED_ENTRY_FOR
  static Entry<ShortRowKernel> entry_for(const RowCall& call) {
    return Entry<ShortRowKernel>(call.n, call.dtype);
  }
#endif
  using RowKernel::RowKernel;
};

// Says nothing of what it is built from: the whole call spec.
class PlainRowKernel : public Kernel, public RowFwdInterface {
 public:
#ifdef BAD_NOTHING_TO_BUILD_FROM
  explicit PlainRowKernel(int) {}
#else
  explicit PlainRowKernel(const RowCall&) {}
#endif
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
#ifdef BAD_OTHER_FORWARD
  absl::Status forward(const Stream&, const Tensor&) const { return absl::OkStatus(); }
#else
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    return absl::OkStatus();
  }
#endif
};

class GeneralRowKernel final : public PlainRowKernel {
 public:
  static constexpr bool general = true;
#ifdef BAD_GENERAL_WITH_PREFERENCE
  static constexpr auto preferred_over = keys("row");
#endif
  explicit GeneralRowKernel(const RowCall& call) : PlainRowKernel(call) {}
};

#if defined(BAD_NO_KERNEL)
struct NoKernel : RowFwdInterface {
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    return absl::OkStatus();
  }
};
#elif defined(BAD_NO_INTERFACE)
struct NoInterface : Kernel, StrangeFwdInterface {
  explicit NoInterface(const ColumnCall&) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&) const override { return absl::OkStatus(); }
};
#elif defined(BAD_TWO_INTERFACES)
struct TwoInterfaces : PlainRowKernel, ColumnFwdInterface {
  using PlainRowKernel::forward;
  using PlainRowKernel::PlainRowKernel;
  absl::Status forward(const Stream&, const Tensor&) const override { return absl::OkStatus(); }
};
#endif

[[maybe_unused]] void register_rows(Registry& registry) {
  registry.add_op<RowFwdOp>();
  registry.add<RowFwdOp, RowKernel>("row");
  registry.add<RowFwdOp, ShortRowKernel>("row_short");
#ifndef BAD_OTHER_FORWARD
  registry.add<RowFwdOp, GeneralRowKernel>("row_general");
#endif
#if defined(BAD_NOTHING_TO_BUILD_FROM) || defined(BAD_OTHER_FORWARD)
  registry.add<RowFwdOp, PlainRowKernel>("row_plain");
#elif defined(BAD_NO_KERNEL)
  registry.add<RowFwdOp, NoKernel>("no_kernel");
#elif defined(BAD_NO_INTERFACE)
  registry.add<RowFwdOp, NoInterface>("no_interface");
#elif defined(BAD_TWO_INTERFACES)
  registry.add<RowFwdOp, TwoInterfaces>("two_interfaces");
#endif
}

[[maybe_unused]] absl::Status use(RowFwdOp& op) {
  RowCall call;
  call.n = 4096;
#if defined(BAD_FOREIGN_INTERFACE)
  return op.kernel_for<StrangeFwdInterface>(ColumnCall{}).status();
#elif defined(BAD_FOREIGN_INTERFACE_OF_A_KEY)
  return op.key_for<StrangeFwdInterface>(ColumnCall{}).status();
#elif defined(BAD_FOREIGN_CALL_SPEC)
  return op.kernel_for<RowFwdInterface>(ColumnCall{}).status();
#else
  KILN_RETURN_IF_ERROR(op.kernel_for<RowFwdInterface>(call).status());
  return op.key_for<RowFwdInterface>(call).status();
#endif
}

}  // namespace
