#ifndef KILN_RUNTIME_TUNE_RECORD_H_
#define KILN_RUNTIME_TUNE_RECORD_H_

#include <kiln/compiler.h>
#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/tune.h>

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// What a sweep found, as it is kept in the cache folder (docs/tuning.md, docs/cache_format.md).
namespace kiln::internal {

// What a record is found by: everything that chooses a kernel object, and the board.
struct TuneKey {
  std::string op, implementation;
  std::size_t kernel = 0;  // which of the entry's kernels
  std::string identity;    // hash
  std::string device_type;
  DeviceFacts facts;
  bool operator==(const TuneKey&) const = default;
};
// The record's name: 32 hex digits, the same on every machine.
KILN_EXPORT std::string record_name(const TuneKey& key);

// What a record holds under. Parts that are empty on either side are not known there (no compiler,
// no driver on this machine) and are not compared.
struct TuneConditions {
  std::string source;  // hash of the default configuration's programs, compiler left out
  CompilerId toolkit;  // name, build, headers
  std::string driver;
  std::string space;  // hash of all configurations
  bool operator==(const TuneConditions&) const = default;
};

struct TuneRecord {
  TuneKey key;
  TuneConditions conditions;
  TuneReport report;  // of the sweep; the device's index and `from_record` are not kept
};

// The canonical JSON of a record. The same record, the same bytes.
KILN_EXPORT std::string record_to_json(const TuneRecord& record);
// DataLoss: no JSON, or not a record; FailedPrecondition: of another version.
KILN_EXPORT absl::StatusOr<TuneRecord> parse_record(std::string_view text);

// Why `record` may not be used for `key` here, now that conditions are as given; empty: it may.
KILN_EXPORT std::string stale_reason(const TuneRecord& record, const TuneKey& key,
                                     const TuneConditions& now);

// Of two records of one key: the one to keep. A complete search before one that was cut short, then
// the one of more samples; `a` where they are equal.
KILN_EXPORT const TuneRecord& better_measured(const TuneRecord& a, const TuneRecord& b);

// The hash of a configuration space, whatever its order.
KILN_EXPORT std::string hash_of_space(const std::vector<Config>& configs);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_RECORD_H_
