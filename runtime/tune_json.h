#ifndef KILN_RUNTIME_TUNE_JSON_H_
#define KILN_RUNTIME_TUNE_JSON_H_

#include <kiln/export.h>
#include <kiln/tune.h>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace kiln::inline v1 {
struct CallArgs;
struct Signature;
}  // namespace kiln::inline v1

namespace kiln::internal {

using Json = nlohmann::ordered_json;

KILN_EXPORT Json json_of(const Config& config);
// Everything of a report; a status that is not ok as "error".
KILN_EXPORT Json json_of(const TuneReport& report);
// All options but the functions, and back. Throws Json::exception for what is not of that form.
KILN_EXPORT Json json_of(const TuneOptions& options);
KILN_EXPORT TuneOptions tune_options_of(const Json& json);

// A call as TuneReport::problem names it: "x float16[8192, 4096], y float16[8192, 4096]".
KILN_EXPORT std::string problem_text(const Signature& signature, const CallArgs& args);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_JSON_H_
