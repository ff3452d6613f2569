#include <kiln/signature.h>

#include "runtime/shape_pattern.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <limits>

// The checks of a call against its op's signature. They run when a call's memo misses, so the good
// case makes no text.
namespace kiln::inline v1 {
namespace {

using internal::parse_shape_pattern;
using internal::ShapeBindings;
using internal::ShapeTerms;

std::string dtype_names(const std::vector<DType>& dtypes) {
  std::string text;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (i > 0) text += i + 1 == dtypes.size() ? " or " : ", ";
    text += to_string(dtypes[i]);
  }
  return text;
}

struct Wrong {
  std::string must;
  std::string want;
  std::string got;
};

// True when two elements of a tensor may share memory. Exact where each stride passes all elements
// of the smaller ones, which holds for every slice, transposition and padding; a layout that
// interleaves more cleverly counts as overlapping. REQUIRES: the strides' span fits (see
// span_fits).
bool may_overlap(const ArgSpec& arg) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank> dims;  // |stride|, extent
  std::size_t count = 0;
  for (int i = 0; i < arg.spec.shape.size(); ++i) {
    if (arg.spec.shape[i] == 0) return false;
    if (arg.spec.shape[i] == 1) continue;
    dims[count++] = {arg.strides[i] < 0 ? -arg.strides[i] : arg.strides[i], arg.spec.shape[i]};
  }
  std::sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t reach = 0;  // the last element that the dimensions so far get to
  for (std::size_t i = 0; i < count; ++i) {
    if (dims[i].first <= reach) return true;
    reach += dims[i].first * (dims[i].second - 1);
  }
  return false;
}

// True when the bytes between a tensor's first and last element can be counted.
bool span_fits(const ArgSpec& arg) {
  std::int64_t span = 0;
  for (int i = 0; i < arg.spec.shape.size(); ++i) {
    if (arg.spec.shape[i] == 0) return true;
  }
  for (int i = 0; i < arg.spec.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (arg.strides[i] == std::numeric_limits<std::int64_t>::min()) return false;
    const std::int64_t stride = arg.strides[i] < 0 ? -arg.strides[i] : arg.strides[i];
    if (__builtin_mul_overflow(stride, arg.spec.shape[i] - 1, &reach)) return false;
    if (__builtin_add_overflow(span, reach, &span)) return false;
  }
  return !__builtin_add_overflow(span, std::int64_t{1}, &span) &&
         !__builtin_mul_overflow(span, std::int64_t{size_of(arg.spec.dtype)}, &span);
}

class CallChecker {
 public:
  CallChecker(const Signature& signature, const ParamValues& params,
              const std::vector<std::optional<ArgSpec>>& inputs)
      : signature_(signature), params_(params), inputs_(inputs), bindings_(params) {}

  absl::Status check_inputs() {
    KILN_RETURN_IF_ERROR(check_extents());
    KILN_RETURN_IF_ERROR(check_count("inputs", signature_.inputs.size(), inputs_.size()));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      KILN_RETURN_IF_ERROR(check(signature_.inputs[i], inputs_[i], signature_.inputs[i].written));
    }
    return absl::OkStatus();
  }

  absl::Status check_outputs(const std::vector<std::optional<ArgSpec>>& outputs) {
    KILN_RETURN_IF_ERROR(check_count("outputs", signature_.outputs.size(), outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      KILN_RETURN_IF_ERROR(check(signature_.outputs[i], outputs[i], /*written=*/true));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorSpec> infer(const TensorParam& param) const {
    TensorSpec spec;
    if (param.host)
      spec.device = Device{DeviceType::cpu(), 0};
    else if (device_of_ != nullptr)
      spec.device = device_;
    if (const ArgSpec* like = input_named(param.dtype_of))
      spec.dtype = like->spec.dtype;
    else if (param.dtypes.size() == 1)
      spec.dtype = param.dtypes.front();
    else
      return refuse(
          param, {"must have a dtype that follows from the inputs", "one dtype",
                  param.dtypes.empty() ? "that of " + param.dtype_of : dtype_names(param.dtypes)});
    absl::StatusOr<ShapeTerms> terms = parse_shape_pattern(param.shape);
    if (!terms.ok()) return about(param, terms.status());
    absl::StatusOr<Dims> shape = bindings_.shape_of(*terms);
    if (!shape.ok()) return about(param, shape.status());
    spec.shape = exists(param) ? *shape : Dims{0};
    if (absl::Status status = check_size(param, contiguous_arg(spec)); !status.ok()) return status;
    return spec;
  }

 private:
  absl::Status refuse(const TensorParam& param, const Wrong& wrong) const {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s %s: want %s, got %s", signature_.op,
                                                      param.name, wrong.must, wrong.want,
                                                      wrong.got));
  }
  absl::Status about(const TensorParam& param, const absl::Status& status) const {
    return annotate(annotate(status, param.name), signature_.op);
  }

  absl::Status check_count(std::string_view what, std::size_t want, std::size_t got) const {
    if (want == got) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the number of %s must be the signature's: want %d, got %d",
                        signature_.op, what, want, got));
  }

  // A parameter that stands in a shape is at fault itself where it can be no part of one.
  absl::Status check_extents() const {
    for (const NamedValue& param : params_) {
      const auto* extents = std::get_if<std::vector<std::int64_t>>(&param.value);
      if (extents == nullptr ||
          std::none_of(extents->begin(), extents->end(), [](std::int64_t e) { return e < 0; }))
        continue;
      const auto uses = [&](const TensorParam& tensor) {
        return tensor.shape.find("*@" + param.name) != std::string::npos;
      };
      if (std::any_of(signature_.inputs.begin(), signature_.inputs.end(), uses)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: %s must hold extents that are not negative: got %s", signature_.op,
                            param.name, to_string(param.value)));
      }
    }
    return absl::OkStatus();
  }

  const ArgSpec* input_named(std::string_view name) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (signature_.inputs[i].name == name) return inputs_[i] ? &*inputs_[i] : nullptr;
    }
    return nullptr;
  }

  absl::Status check(const TensorParam& param, const std::optional<ArgSpec>& arg, bool written) {
    if (!arg) {
      if (param.optional || !exists(param)) return absl::OkStatus();
      return refuse(param, {"must be passed", "a tensor", "none"});
    }
    KILN_RETURN_IF_ERROR(check_dtype(param, *arg));
    KILN_RETURN_IF_ERROR(check_size(param, *arg));
    KILN_RETURN_IF_ERROR(check_shape(param, *arg));
    KILN_RETURN_IF_ERROR(check_layout(param, *arg, written));
    return check_device(param, *arg);
  }

  absl::Status check_dtype(const TensorParam& param, const ArgSpec& arg) const {
    const DType got = arg.spec.dtype;
    if (!param.dtype_of.empty()) {
      const ArgSpec* like = input_named(param.dtype_of);
      if (like == nullptr || like->spec.dtype == got) return absl::OkStatus();
      return refuse(param, {"must have the dtype of " + param.dtype_of,
                            std::string(to_string(like->spec.dtype)), std::string(to_string(got))});
    }
    if (std::find(param.dtypes.begin(), param.dtypes.end(), got) != param.dtypes.end()) {
      return absl::OkStatus();
    }
    return refuse(param, {"must have a dtype that is served", dtype_names(param.dtypes),
                          std::string(to_string(got))});
  }

  absl::Status check_size(const TensorParam& param, const ArgSpec& arg) const {
    if (arg.strides.size() != arg.spec.shape.size()) {
      return refuse(param, {"must have as many strides as dimensions",
                            std::to_string(arg.spec.shape.size()), to_string(arg.strides)});
    }
    const absl::StatusOr<std::int64_t> count = checked_numel(arg.spec.shape);
    if (!count.ok()) return about(param, count.status());
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(*count, std::int64_t{size_of(arg.spec.dtype)}, &bytes) ||
        !span_fits(arg)) {
      return refuse(param, {"must span less than 2^63 bytes", "fewer elements or smaller strides",
                            std::string(to_string(arg.spec.dtype)) + to_string(arg.spec.shape) +
                                " with strides " + to_string(arg.strides)});
    }
    return absl::OkStatus();
  }

  bool exists(const TensorParam& param) const {
    if (param.only_if.empty()) return true;
    const FieldValue* value = find_param(params_, param.only_if);
    return value != nullptr && *value == FieldValue(true);
  }

  absl::Status check_shape(const TensorParam& param, const ArgSpec& arg) {
    if (!exists(param)) {
      if (arg.spec.shape == Dims{0}) return absl::OkStatus();
      return refuse(param, {"exists only with " + param.only_if, "no tensor, or an empty one: [0]",
                            to_string(arg.spec.shape)});
    }
    absl::StatusOr<ShapeTerms> terms = parse_shape_pattern(param.shape);
    if (!terms.ok()) return about(param, terms.status());
    absl::StatusOr<bool> fits = bindings_.match(*terms, arg.spec.shape);
    if (!fits.ok()) return about(param, fits.status());
    if (*fits) return absl::OkStatus();
    return refuse(param, {"must have the shape [" + param.shape + "]", bindings_.describe(*terms),
                          to_string(arg.spec.shape)});
  }

  absl::Status check_layout(const TensorParam& param, const ArgSpec& arg, bool written) const {
    const int alignment = arg.alignment;
    if (alignment < 1 || alignment > 16 || (alignment & (alignment - 1)) != 0) {
      return refuse(param, {"must have an alignment that is a power of two", "1, 2, 4, 8 or 16",
                            std::to_string(alignment)});
    }
    const bool is_empty = numel(arg.spec.shape) == 0;
    if (!is_empty && alignment < size_of(arg.spec.dtype)) {
      return refuse(param, {"must be aligned to its elements",
                            "a multiple of " + std::to_string(size_of(arg.spec.dtype)) + " bytes",
                            "one of " + std::to_string(alignment)});
    }
    if (!written) return absl::OkStatus();
    if (param.contiguous && !arg.is_contiguous()) {
      return refuse(param, {"must be contiguous, as it is written",
                            "strides " + to_string(contiguous_strides(arg.spec.shape)),
                            to_string(arg.strides) + " for shape " + to_string(arg.spec.shape)});
    }
    if (!param.contiguous && may_overlap(arg)) {
      return refuse(param,
                    {"must not overlap itself, as it is written",
                     "strides that keep the elements of " + to_string(arg.spec.shape) + " apart",
                     to_string(arg.strides)});
    }
    return absl::OkStatus();
  }

  absl::Status check_device(const TensorParam& param, const ArgSpec& arg) {
    if (param.host) {
      if (arg.spec.device.type == DeviceType::cpu()) return absl::OkStatus();
      return refuse(param, {"must be on the host", "cpu:0", to_string(arg.spec.device)});
    }
    if (device_of_ == nullptr) {
      device_of_ = &param;
      device_ = arg.spec.device;
    }
    if (device_ == arg.spec.device) return absl::OkStatus();
    return refuse(param, {"must be on the device of " + device_of_->name, to_string(device_),
                          to_string(arg.spec.device)});
  }

  const Signature& signature_;
  const ParamValues& params_;
  const std::vector<std::optional<ArgSpec>>& inputs_;
  ShapeBindings bindings_;
  const TensorParam* device_of_ = nullptr;  // the first tensor that is not on the host
  Device device_;
};

}  // namespace

absl::StatusOr<std::vector<TensorSpec>> infer_outputs(
    const Signature& signature, const ParamValues& params,
    const std::vector<std::optional<ArgSpec>>& inputs) {
  CallChecker checker(signature, params, inputs);
  KILN_RETURN_IF_ERROR(checker.check_inputs());
  std::vector<TensorSpec> outputs;
  outputs.reserve(signature.outputs.size());
  for (const TensorParam& param : signature.outputs) {
    KILN_ASSIGN_OR_RETURN(const TensorSpec spec, checker.infer(param));
    outputs.push_back(spec);
  }
  return outputs;
}

absl::Status check_call(const Signature& signature, const ParamValues& params,
                        const CallArgs& args) {
  CallChecker checker(signature, params, args.inputs);
  KILN_RETURN_IF_ERROR(checker.check_inputs());
  return checker.check_outputs(args.outputs);
}

}  // namespace kiln::inline v1
