#include <kiln/signature.h>

#include "runtime/shape_pattern.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <set>

namespace kiln::inline v1 {
namespace {

using internal::ShapeTerm;

class SignatureChecker {
 public:
  explicit SignatureChecker(const Signature& signature) : signature_(signature) {}

  absl::Status check() {
    if (signature_.op.empty())
      return absl::InvalidArgumentError("signature: op must have a name: got none");
    KILN_RETURN_IF_ERROR(check_names());
    KILN_RETURN_IF_ERROR(check_defaults(signature_.params));
    KILN_RETURN_IF_ERROR(check_defaults(signature_.execution_params));
    if (!(signature_.tolerance_steps > 0)) {
      return refuse("tolerance_steps must be positive",
                    to_string(FieldValue(signature_.tolerance_steps)));
    }
    for (const TensorParam& param : signature_.inputs)
      KILN_RETURN_IF_ERROR(check_tensor(param, false));
    for (const TensorParam& param : signature_.outputs)
      KILN_RETURN_IF_ERROR(check_tensor(param, true));
    return absl::OkStatus();
  }

 private:
  absl::Status refuse(std::string_view must, std::string_view got) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: signature: %s: got \"%s\"", signature_.op, must, got));
  }

  // Tensors and parameters share one space of names: a target and a JSON call are given them by
  // name.
  absl::Status check_names() const {
    std::set<std::string_view> names;
    const auto add = [&](const std::string& name) {
      if (name.empty()) return refuse("every tensor and parameter must have a name", "");
      if (!names.insert(name).second) return refuse("names must be given once", name);
      return absl::OkStatus();
    };
    for (const TensorParam& param : signature_.inputs) KILN_RETURN_IF_ERROR(add(param.name));
    for (const TensorParam& param : signature_.outputs) KILN_RETURN_IF_ERROR(add(param.name));
    for (const ParamDecl& decl : signature_.params) KILN_RETURN_IF_ERROR(add(decl.name));
    for (const ParamDecl& decl : signature_.execution_params) KILN_RETURN_IF_ERROR(add(decl.name));
    return absl::OkStatus();
  }

  absl::Status check_defaults(const std::vector<ParamDecl>& decls) const {
    for (const ParamDecl& decl : decls) {
      if (!decl.default_value) continue;
      KILN_RETURN_IF_ERROR(complete_params(signature_.op, std::span(&decl, 1), {}).status());
    }
    return absl::OkStatus();
  }

  absl::Status check_tensor(const TensorParam& param, bool output) {
    KILN_RETURN_IF_ERROR(check_dtypes(param, output));
    KILN_RETURN_IF_ERROR(check_only_if(param, output));
    const absl::StatusOr<internal::ShapeTerms> terms = internal::parse_shape_pattern(param.shape);
    if (!terms.ok()) return annotate(annotate(terms.status(), param.name), signature_.op);
    std::string unknown_list;
    for (const ShapeTerm& term : *terms) {
      KILN_RETURN_IF_ERROR(check_term(param, term, output));
      if (term.kind != ShapeTerm::Kind::list || bound_.contains(spelled(term))) continue;
      if (!unknown_list.empty()) {
        return refuse("a shape may have one list of unknown length: " + param.name, param.shape);
      }
      unknown_list = spelled(term);
    }
    // What only an optional tensor would tell is not known when it is left out.
    if (param.optional || output) return absl::OkStatus();
    for (const ShapeTerm& term : *terms) {
      if (term.kind == ShapeTerm::Kind::dim || term.kind == ShapeTerm::Kind::list)
        bound_.insert(spelled(term));
    }
    return absl::OkStatus();
  }

  absl::Status check_only_if(const TensorParam& param, bool output) const {
    if (param.only_if.empty()) return absl::OkStatus();
    for (const ParamDecl& decl : signature_.params) {
      if (output && decl.name == param.only_if && decl.type == ParamType::boolean)
        return absl::OkStatus();
    }
    return refuse("only_if is for outputs and names a boolean parameter: " + param.name,
                  param.only_if);
  }

  absl::Status check_dtypes(const TensorParam& param, bool output) const {
    if (param.dtype_of.empty()) {
      if (param.dtypes.empty()) return refuse("a tensor must have dtypes or dtype_of", param.name);
      if (output && param.dtypes.size() > 1) {
        return refuse("an output must have dtype_of or one dtype", param.name);
      }
      return absl::OkStatus();
    }
    if (!param.dtypes.empty())
      return refuse("a tensor must have either dtypes or dtype_of", param.name);
    for (const TensorParam& input : signature_.inputs) {
      if (input.name == param.dtype_of && input.dtype_of.empty() && !input.optional)
        return absl::OkStatus();
    }
    return refuse("dtype_of must name an input that is always passed and has dtypes of its own",
                  param.dtype_of);
  }

  absl::Status check_term(const TensorParam& param, const ShapeTerm& term, bool output) {
    const bool wants_list = term.is_list();
    if (term.kind == ShapeTerm::Kind::param || term.kind == ShapeTerm::Kind::param_list) {
      const ParamType want = wants_list ? ParamType::integers : ParamType::integer;
      for (const ParamDecl& decl : signature_.params) {
        if (decl.name == term.name && decl.type == want) return absl::OkStatus();
      }
      return refuse(absl::StrFormat("the shape of %s must name a parameter of type %s", param.name,
                                    to_string(want)),
                    term.name);
    }
    if (term.kind == ShapeTerm::Kind::extent) return absl::OkStatus();
    const std::string other = (wants_list ? "" : "*") + std::string(term.name);
    if (seen_.contains(other)) {
      return refuse("a name must stand for one dimension or for a list, not both", term.name);
    }
    seen_.insert(spelled(term));
    if (output && !bound_.contains(spelled(term))) {
      return refuse(
          "the shape of output " + param.name + " must follow from inputs that are always passed",
          spelled(term));
    }
    return absl::OkStatus();
  }

  static std::string spelled(const ShapeTerm& term) {
    return (term.kind == ShapeTerm::Kind::list ? "*" : "") + std::string(term.name);
  }

  const Signature& signature_;
  std::set<std::string> seen_;   // names as dimensions ("C") and lists ("*B") of all tensors so far
  std::set<std::string> bound_;  // those whose meaning is known when the inputs so far are passed
};

}  // namespace

absl::Status check_signature(const Signature& signature) {
  return SignatureChecker(signature).check();
}

}  // namespace kiln::inline v1
