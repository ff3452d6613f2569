#ifndef KILN_CLI_TUNE_H_
#define KILN_CLI_TUNE_H_

#include "cache/tuning_files.h"
#include "cli/session.h"
#include "runtime/tune_record.h"

#include <nlohmann/json.hpp>

#include <string>

namespace kiln::cli {

// Keeps `record` in the folder unless one that was measured under the same conditions, as well or
// better, is there. True: it was kept.
absl::StatusOr<bool> merge_record(const cache::TuningFiles& files,
                                  const internal::TuneRecord& record);

// `kiln tune show|clear|export|import`.
void add_tune_records(CLI::App& tune, Session& session);

// "threads=256 stages=2"
std::string config_text(const Json& config);

// One page that needs nothing else: for every report a picture of its candidates' times. `results`
// is the list that `kiln tune --json` prints.
std::string tune_report_page(const Json& results);

}  // namespace kiln::cli

#endif  // KILN_CLI_TUNE_H_
