#ifndef KILN_RUNTIME_CALL_JSON_H_
#define KILN_RUNTIME_CALL_JSON_H_

#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/selection.h>
#include <kiln/signature.h>
#include <kiln/status.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Calls as JSON (docs/call_format.md). One call is
//
//   {"op":"LayerNormFwdOp",
//    "params":{"normalized_shape":[4096],"eps":1e-5},
//    "inputs":{"x":{"dtype":"float16","shape":[8192,4096],"strides":[8192,1],"align":2}, ...}}
//
// and further fields are "execution_params", "outputs" (written like inputs; only for strides and
// alignment that are not the default ones), "device" ("cuda:0") and "tags" (a list of words that
// tools choose calls by).
namespace kiln::internal {

using Json = nlohmann::ordered_json;

// A call in words: an op, its parameters and its tensors without data. A value.
struct ParsedCall {
  std::string op;
  ParamValues params;            // completed, in the signature's order
  ParamValues execution_params;  // completed
  CallArgs args;  // in the signature's order; outputs stated or inferred; passed `check_call`
  std::optional<Device>
      device;  // where the call says it runs; its tensors are on cuda:0 when it does not say
  std::vector<std::string> tags;
};

// The signature of an op by name; NotFound when there is none.
using FindSignature = std::function<absl::StatusOr<const Signature*>(std::string_view op)>;

// The call that `text` holds. `op`, when not empty, is the op of a text that need not name one.
// InvalidArgument: malformed JSON (with line and column), an unknown op, field, parameter, tensor
// or dtype, a value of the wrong type, or a call that the signature's checks refuse; the message
// names the field and the value received.
KILN_EXPORT absl::StatusOr<ParsedCall> parse_call(std::string_view text,
                                                  const FindSignature& find_signature,
                                                  std::string_view op = "");

// A call of a calls file with where it stands.
struct CallLine {
  int line = 0;
  ParsedCall call;
  std::string variant;  // which of the line's calls, "n=1024"; empty when the line is one call
};
// What lines that stand for many calls may make in all, unless more is asked for.
inline constexpr std::int64_t kMaxGeneratedCalls = 10000;

// The calls that `text` holds, which may stand for many (call_generators.h); `line` is 0.
KILN_EXPORT absl::StatusOr<std::vector<CallLine>> parse_call_line(
    std::string_view text, const FindSignature& find_signature, std::string_view op = "",
    std::int64_t limit = kMaxGeneratedCalls);

// The calls of a file, one object a line; blank lines and lines that begin with '#' are left out.
// `name` is for messages: "calls.jsonl:3: ...". InvalidArgument: the first line that holds no call,
// or no line at all does, or lines that stand for many calls make more than `limit`.
KILN_EXPORT absl::StatusOr<std::vector<CallLine>> parse_calls(
    std::string_view text, std::string_view name, const FindSignature& find_signature,
    std::int64_t limit = kMaxGeneratedCalls);

// `call` with every tensor that is not on the host on `device`.
KILN_EXPORT ParsedCall on_device(const ParsedCall& call, const Signature& signature,
                                 const Device& device);

// The canonical form of a call: one line, fields in the order above, parameters and tensors in the
// signature's; what has its default value is left out, but parameters are not. `parse_call` of it
// gives the same call.
KILN_EXPORT Json json_of(const ParsedCall& call, const Signature& signature);
KILN_EXPORT std::string call_to_json(const ParsedCall& call, const Signature& signature);

// {"n":4096,...}: the fields of a call spec in order, then the device, then stated facts.
KILN_EXPORT Json json_of(CallRef call);
KILN_EXPORT Json json_of(const FieldValue& value);
KILN_EXPORT Json json_of(const DeviceFacts& facts);
KILN_EXPORT Json json_of(const TensorParam& param);
KILN_EXPORT Json json_of(const Signature& signature);
// [{"key":...,"verdict":...,"reason":...,"origin":...}, ...]
KILN_EXPORT Json json_of(const std::vector<Verdict>& verdicts);
// {"chosen":...,"error":...,"message":...,"implementations":[...]}
KILN_EXPORT Json json_of(const Selection& selection);

// The name of an error for scripts: its ErrorKind, else its code in snake_case
// ("invalid_argument").
KILN_EXPORT std::string kind_name(const absl::Status& status);

// `json` on one line. Bytes that are no UTF-8 are replaced; never throws.
KILN_EXPORT std::string dump(const Json& json, int indent = -1);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_CALL_JSON_H_
