#include "cli/run_call.h"

#include "runtime/tensor_buffer.h"
#include "runtime/test_values.h"
#include "runtime/tools.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <map>
#include <memory>

namespace kiln::cli {
namespace {

using internal::compare;
using internal::ParsedCall;
using internal::TensorBuffer;
using internal::TestValues;

double seconds_since(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// The tensors of a call, in memory.
struct CallBuffers {
  std::vector<std::optional<TensorBuffer>> inputs, outputs;
};

std::vector<const Tensor*> views_of(const std::vector<std::optional<TensorBuffer>>& buffers) {
  std::vector<const Tensor*> views;
  for (const auto& buffer : buffers) views.push_back(buffer ? &buffer->tensor() : nullptr);
  return views;
}

// A stream that is destroyed with its scope.
class ScopedStream {
 public:
  ScopedStream(DeviceSupport& support, Stream stream) : support_(support), stream_(stream) {}
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;
  ~ScopedStream() { (void)support_.destroy_stream(stream_); }
  const Stream& get() const { return stream_; }

 private:
  DeviceSupport& support_;
  Stream stream_;
};

class CallRunner {
 public:
  CallRunner(Runtime& runtime, const ParsedCall& call, Op& op, DeviceSupport& support,
             const Stream& stream)
      : runtime_(runtime), call_(call), op_(op), support_(support), stream_(stream) {}

  absl::StatusOr<RunReport> run(const RunOptions& options) {
    RunReport report;
    const absl::Time begun = absl::Now();
    KILN_RETURN_IF_ERROR(options.check ? fill(options.seed) : fill_quickly(options.seed));
    report.fill_seconds = seconds_since(begun);
    KILN_RETURN_IF_ERROR(build(report));
    const absl::Time start = absl::Now();
    KILN_RETURN_IF_ERROR(call_once());
    KILN_RETURN_IF_ERROR(support_.synchronize(stream_));
    report.load_seconds = seconds_since(start);
    report.host_seconds = seconds_since(begun);
    report.target = op_.serving_target().value_or(std::string(kBuiltin));
    if (options.check) KILN_RETURN_IF_ERROR(check(report));
    KILN_RETURN_IF_ERROR(time(report));
    report.load_seconds = std::max(0.0, report.load_seconds - report.run_seconds);
    report.host_seconds = std::max(0.0, report.host_seconds - report.run_seconds);
    report.roofline = op_.roofline_of(call_.args);
    report.floor = floor_of(support_, stream_, report.roofline, call_.args, /*flush_bytes=*/0);
    return report;
  }

 private:
  absl::Status allocate(bool with_images) {
    const Signature& signature = op_.signature();
    const auto all = [&](const std::vector<TensorParam>& params, const auto& args) {
      return internal::allocate_all(support_, stream_, params, args, with_images);
    };
    KILN_ASSIGN_OR_RETURN(buffers_.inputs, all(signature.inputs, call_.args.inputs));
    KILN_ASSIGN_OR_RETURN(buffers_.outputs, all(signature.outputs, call_.args.outputs));
    input_views_ = views_of(buffers_.inputs);
    output_views_ = views_of(buffers_.outputs);
    return absl::OkStatus();
  }

  absl::Status fill(std::uint64_t seed) {
    KILN_RETURN_IF_ERROR(allocate(/*with_images=*/true));
    for (std::size_t i = 0; i < buffers_.inputs.size(); ++i) {
      if (!buffers_.inputs[i]) continue;
      buffers_.inputs[i]->set(TestValues(buffers_.inputs[i]->tensor().dtype, seed * 1000 + i));
      KILN_RETURN_IF_ERROR(buffers_.inputs[i]->upload());
    }
    for (auto& buffer : buffers_.outputs) {
      if (buffer) KILN_RETURN_IF_ERROR(buffer->upload());
    }
    return support_.synchronize(stream_);
  }

  // Where nobody looks at what comes out: the same values for all inputs of a dtype, made once.
  absl::Status fill_quickly(std::uint64_t seed) {
    KILN_RETURN_IF_ERROR(allocate(/*with_images=*/false));
    std::map<DType, TestValues> values;
    for (std::size_t i = 0; i < buffers_.inputs.size(); ++i) {
      if (!buffers_.inputs[i]) continue;
      TensorBuffer& buffer = *buffers_.inputs[i];
      const DType dtype = buffer.tensor().dtype;
      const TestValues& table = values.try_emplace(dtype, dtype, seed).first->second;
      if (op_.signature().inputs[i].host)
        buffer.set(table);
      else
        KILN_RETURN_IF_ERROR(buffer.repeat(table));
    }
    return support_.synchronize(stream_);
  }

  // Builds what the call needs ahead of it, so that its time is told apart from loading's. Where a
  // call may not compile, or targets may serve it, the artifacts are only looked for, and the call
  // itself does the rest.
  absl::Status build(RunReport& report) {
    KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support_.facts(stream_.device.index));
    const DeviceType type = stream_.device.type;
    const bool may_build =
        runtime_.options().policy != CompilePolicy::forbid && runtime_.registered_targets().empty();
    const absl::Time start = absl::Now();
    absl::StatusOr<std::vector<tools::WarmedKernel>> warmed = std::vector<tools::WarmedKernel>();
    if (may_build) {
      warmed = tools::warm_call(op_, call_.args, type, facts);
      KILN_RETURN_IF_ERROR(warmed.status());
      report.build_seconds = seconds_since(start);
    }
    const auto planned = may_build
                             ? tools::explain_call(op_, call_.args, type, facts, /*look_up=*/false)
                             : tools::look_up_call(op_, call_.args, type, facts);
    if (!planned.ok()) return may_build ? planned.status() : absl::OkStatus();
    for (std::size_t k = 0; k < planned->size(); ++k) {
      const tools::PlannedKernel& kernel = (*planned)[k];
      RunReport::KernelRun one{kernel.interface,
                               kernel.selection.chosen.value_or(""),
                               kernel.identity.hash(),
                               kernel.identity.text(),
                               {},
                               {}};
      const auto add = [&one](const cache::CompileKey& key,
                              const std::optional<cache::TierKind>& tier) {
        one.keys.push_back(to_hex(key));
        one.tiers.push_back(tier ? std::string(cache::to_string(*tier)) : "built");
      };
      for (const auto& program : kernel.programs) add(program.key, program.tier);
      if (k < warmed->size()) {
        for (const auto& program : (*warmed)[k].programs) add(program.key, program.found_in);
      }
      report.kernels.push_back(std::move(one));
    }
    return absl::OkStatus();
  }

  absl::Status call_once() {
    return op_.call(stream_, input_views_, output_views_, call_.execution_params);
  }

  absl::Status check(RunReport& report) {
    const Reference* reference = runtime_.reference(call_.op);
    if (reference == nullptr) {
      return absl::UnimplementedError(absl::StrFormat(
          "%s: must have a reference to be checked against: got none; use --no-check", call_.op));
    }
    const Signature& signature = op_.signature();
    std::vector<std::vector<double>> inputs = doubles_of(buffers_.inputs);
    std::vector<std::vector<double>> outputs = doubles_of(buffers_.outputs);
    const absl::Status status =
        (*reference)(call_.params, call_.execution_params, host_tensors(buffers_.inputs, inputs),
                     host_tensors(buffers_.outputs, outputs));
    if (!status.ok()) return annotate(status, call_.op + ": reference");
    report.checked = true;
    report.tolerance = signature.tolerance_steps;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (signature.inputs[i].written)
        KILN_RETURN_IF_ERROR(check_one(signature.inputs[i], buffers_.inputs[i], inputs[i], report));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      KILN_RETURN_IF_ERROR(
          check_one(signature.outputs[i], buffers_.outputs[i], outputs[i], report));
    }
    return absl::OkStatus();
  }

  static absl::Status check_one(const TensorParam& param, std::optional<TensorBuffer>& buffer,
                                const std::vector<double>& want, RunReport& report) {
    if (!buffer) return absl::OkStatus();
    KILN_RETURN_IF_ERROR(buffer->download());
    const Difference difference = compare(buffer->tensor().dtype, buffer->elements(), want);
    if (report.worst_tensor.empty() || difference.max_steps > report.worst.max_steps) {
      report.worst_tensor = param.name;
      report.worst = difference;
    }
    if (!buffer->surroundings_intact())
      report.failure = "memory beside " + param.name + " was written";
    return absl::OkStatus();
  }

  static std::vector<std::vector<double>> doubles_of(
      const std::vector<std::optional<TensorBuffer>>& buffers) {
    std::vector<std::vector<double>> values;
    for (const auto& buffer : buffers)
      values.push_back(buffer ? buffer->elements() : std::vector<double>());
    return values;
  }

  static std::vector<HostTensor> host_tensors(
      const std::vector<std::optional<TensorBuffer>>& buffers,
      std::vector<std::vector<double>>& values) {
    std::vector<HostTensor> tensors;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      // An empty tensor that was passed has data too: null means that it was not.
      values[i].reserve(1);
      tensors.push_back(buffers[i] ? HostTensor{buffers[i]->tensor().shape, values[i].data(),
                                                buffers[i]->tensor().dtype}
                                   : HostTensor{});
    }
    return tensors;
  }

  // The median of a few calls; what they write is looked at no more.
  absl::Status time(RunReport& report) {
    constexpr int kRounds = 7;
    constexpr double kEnoughSeconds = 1;
    std::vector<double> rounds;
    const absl::Time start = absl::Now();
    while (rounds.size() < kRounds && (rounds.empty() || seconds_since(start) < kEnoughSeconds)) {
      KILN_ASSIGN_OR_RETURN(const double seconds,
                            support_.time(stream_, [this] { return call_once(); }));
      rounds.push_back(seconds);
    }
    std::sort(rounds.begin(), rounds.end());
    report.run_seconds = rounds[rounds.size() / 2];
    return absl::OkStatus();
  }

  Runtime& runtime_;
  const ParsedCall& call_;
  Op& op_;
  DeviceSupport& support_;
  const Stream& stream_;
  CallBuffers buffers_;
  std::vector<const Tensor*> input_views_, output_views_;
};

}  // namespace

absl::StatusOr<RunReport> run_call(Runtime& runtime, const ParsedCall& parsed, const Device& device,
                                   const RunOptions& options) {
  const absl::Time begun = absl::Now();
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime.device_support(device.type));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op, runtime.create_op(parsed.op, parsed.params));
  const ParsedCall call = internal::on_device(parsed, op->signature(), device);
  const absl::Time opening = absl::Now();
  KILN_ASSIGN_OR_RETURN(const Stream stream, support->create_stream(device.index));
  const absl::Time opened = absl::Now();
  const ScopedStream scoped(*support, stream);
  KILN_ASSIGN_OR_RETURN(RunReport report,
                        CallRunner(runtime, call, *op, *support, scoped.get()).run(options));
  report.open_seconds = absl::ToDoubleSeconds(opened - opening);
  report.host_seconds += absl::ToDoubleSeconds(opening - begun);
  return report;
}

}  // namespace kiln::cli
