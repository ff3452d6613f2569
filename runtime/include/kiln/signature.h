#ifndef KILN_SIGNATURE_H_
#define KILN_SIGNATURE_H_

#include <kiln/any_call.h>
#include <kiln/dtype.h>
#include <kiln/export.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// An op's signature, as data. From it come the call checks, shape inference, the JSON form of a
// call, `kiln ops` and the arguments of a target.
namespace kiln::inline v1 {

// One tensor of an op. `shape` is a list of dimensions:
//   C      a dimension; the same name has the same extent everywhere in a call
//   3      exactly 3
//   *B     any number of dimensions (0 or more); the same name is the same list everywhere
//   *@p    the list that parameter p holds          @p  the integer that parameter p holds
// for example "*B, *@normalized_shape" or "B, C, *L".
struct TensorParam {
  std::string name;
  std::vector<DType> dtypes;  // those it may have; empty with `dtype_of`
  std::string dtype_of;       // has the dtype of this input
  std::string shape;
  bool optional = false;  // may be left out; an output: null when the caller does not want it
  // An output that exists only where this boolean parameter is true; elsewhere it is empty (shape
  // [0]) or null.
  std::string only_if = {};
  bool written = false;    // an input that is written in place
  bool contiguous = true;  // false: any strides are handed to the kernels
  bool host = false;       // lives on the host ("device: cpu"), whatever the call's device
};

enum class ParamType { integer, number, boolean, text, integers };
KILN_EXPORT std::string_view to_string(ParamType type);

// A parameter fixed at construction, or an execution parameter of a call.
struct ParamDecl {
  std::string name;
  ParamType type = ParamType::integer;
  std::optional<FieldValue> default_value;  // none: it must be given
};

struct Signature {
  std::string op;  // "LayerNormFwdOp"
  std::vector<TensorParam> inputs;
  std::vector<ParamDecl> params;
  std::vector<ParamDecl> execution_params;
  std::vector<TensorParam> outputs;
  // The largest error a kernel of this op may have against the reference in double, in steps: the
  // rounding step of the output's dtype at the size of the value, plus that of float32 arithmetic
  // at the size of the output's largest value (docs/numerics.md).
  double tolerance_steps = 4;
};

// Values of parameters by name, in the signature's order once `complete_params` has run.
using ParamValues = std::vector<NamedValue>;
KILN_EXPORT const FieldValue* find_param(const ParamValues& values, std::string_view name);

// `given` with defaults filled in, in the signature's order. InvalidArgument: unknown, missing, or
// of another type.
KILN_EXPORT absl::StatusOr<ParamValues> complete_params(std::string_view op,
                                                        std::span<const ParamDecl> decls,
                                                        const ParamValues& given);

// One tensor argument of a call without its data.
struct ArgSpec {
  TensorSpec spec;
  Dims strides;        // in elements
  int alignment = 16;  // bytes: the largest power of two, at most 16, that divides the address
  bool is_contiguous() const;
  friend bool operator==(const ArgSpec&, const ArgSpec&) = default;
};
KILN_EXPORT ArgSpec contiguous_arg(const TensorSpec& spec, int alignment = 16);
inline bool ArgSpec::is_contiguous() const {
  return Tensor{nullptr, spec.device, spec.dtype, spec.shape, strides}.is_contiguous();
}

// All tensors of a call, in signature order; nullopt: not passed.
struct CallArgs {
  std::vector<std::optional<ArgSpec>> inputs;
  std::vector<std::optional<ArgSpec>>
      outputs;  // for a call that only asks (explain, warm): by `infer_outputs`
};

// The outputs' specs that `inputs` lead to, contiguous. Runs all checks of inputs.
// InvalidArgument: names the op, the tensor, what it wants and what it got.
KILN_EXPORT absl::StatusOr<std::vector<TensorSpec>> infer_outputs(
    const Signature& signature, const ParamValues& params,
    const std::vector<std::optional<ArgSpec>>& inputs);

// Checks a whole call: presence, dtypes, shapes, one device, written tensors contiguous where
// declared.
KILN_EXPORT absl::Status check_call(const Signature& signature, const ParamValues& params,
                                    const CallArgs& args);

// Well-formedness of the signature itself (names unique, shapes parse, references known).
KILN_EXPORT absl::Status check_signature(const Signature& signature);

}  // namespace kiln::inline v1

#endif  // KILN_SIGNATURE_H_
