#ifndef KILN_RUNTIME_CALL_GENERATORS_H_
#define KILN_RUNTIME_CALL_GENERATORS_H_

#include <kiln/export.h>
#include <kiln/signature.h>
#include <kiln/status.h>

#include "runtime/call_json.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

// Lines of a calls file that stand for many calls (docs/call_format.md). What varies is named under
// "for" and used as "$name", or is a list or a range where one value is expected:
//
//   {"op":"LayerNormFwdOp","for":{"n":[1024,4096]},"params":{"normalized_shape":["$n"]},
//    "inputs":{"x":{"dtype":["float16","bfloat16"],"shape":[{"from":1,"to":64,"times":2},"$n"]}}}
namespace kiln::internal {

// One of the calls that a line stands for.
struct GeneratedCall {
  std::string variant;  // "n=1024, inputs.x.dtype=\"float16\""; empty when the line is one call
  Json call;            // without "for", lists and ranges
};

struct GeneratedCalls {
  bool is_one_call = true;           // nothing varies
  std::int64_t count = 1;            // known before any is made; saturates at the largest int64
  std::vector<GeneratedCall> calls;  // none of them when count is above the limit
};

// The calls of `line`, which is of an op with `signature`; what varies last varies fastest.
// InvalidArgument names the field and what was received.
KILN_EXPORT absl::StatusOr<GeneratedCalls> generate_calls(const Json& line,
                                                          const Signature& signature,
                                                          std::int64_t limit);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_CALL_GENERATORS_H_
