#ifndef KILN_RUNTIME_TUNE_JSON_H_
#define KILN_RUNTIME_TUNE_JSON_H_

#include <kiln/export.h>
#include <kiln/tune.h>

#include <nlohmann/json_fwd.hpp>

namespace kiln::internal {

using Json = nlohmann::ordered_json;

KILN_EXPORT Json json_of(const Config& config);
// Everything of a report; a status that is not ok as "error".
KILN_EXPORT Json json_of(const TuneReport& report);
// All options but the functions, and back. Throws Json::exception for what is not of that form.
KILN_EXPORT Json json_of(const TuneOptions& options);
KILN_EXPORT TuneOptions tune_options_of(const Json& json);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_JSON_H_
