#ifndef KILN_RUNTIME_JSON_TEXT_H_
#define KILN_RUNTIME_JSON_TEXT_H_

#include <kiln/export.h>
#include <kiln/status.h>

#include "runtime/call_json.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace kiln::internal {

// InvalidArgument: `text` is nested so deeply that a parser would run out of stack, or holds a NUL,
// at which the parser would stop. What comes from outside passes this before it is parsed.
KILN_EXPORT absl::Status check_json_text(std::string_view text);

// The JSON value that `text` is, whole. InvalidArgument, with line and column: malformed, or a
// field is given twice.
KILN_EXPORT absl::StatusOr<Json> parse_json(std::string_view text);

// A value as an error message shows it: JSON, cut after some 60 characters.
KILN_EXPORT std::string show(const Json& json);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_JSON_TEXT_H_
