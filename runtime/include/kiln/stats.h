#ifndef KILN_STATS_H_
#define KILN_STATS_H_

#include <kiln/export.h>

#include <cstdint>
#include <string>

namespace kiln::inline v1 {

// What a process has counted so far. Each number only grows.
struct RuntimeStats {
  std::int64_t selections = 0;  // misses that asked implementations
  std::int64_t entries_built = 0;
  std::int64_t entries_dropped = 0;     // beyond RuntimeOptions::max_entries
  std::int64_t loads = 0, unloads = 0;  // of images on a device
  std::int64_t compilations = 0, compile_failures = 0;
  std::int64_t memory_hits = 0, disk_hits = 0, layer_hits = 0, remote_hits = 0, cache_misses = 0;
  std::int64_t cache_stored = 0, cache_evicted = 0;
  std::int64_t cache_quarantined = 0;  // damaged files that were set aside
  std::int64_t cache_errors = 0;       // trouble of the disk or a remote, which is no miss
  // Of the remote cache: an error is no answer, a miss is one. Damaged: not what it must be, or not
  // signed. Skipped: not asked while it was left alone after failures. Dropped: writes given up.
  std::int64_t remote_misses = 0, remote_errors = 0, remote_damaged = 0, remote_skipped = 0;
  std::int64_t remote_stored = 0, remote_dropped = 0;
  std::int64_t cache_bytes_read = 0, cache_bytes_written = 0;
  std::int64_t input_copies = 0;    // inputs that were copied to be contiguous
  std::int64_t stand_ins = 0;       // calls served by another implementation while theirs compiled
  std::int64_t calls_recorded = 0;  // lines written to RuntimeOptions::record_calls_file
  std::int64_t sweeps = 0;          // tuning sweeps that were run
  std::int64_t tuned_loads = 0;     // kernels loaded with a stored winner
  std::int64_t fact_reads = 0;      // devices asked for their facts
  std::int64_t workers_started = 0,
               workers_lost = 0;         // compile workers; lost: to a crash or a limit
  std::int64_t compiled_in_process = 0;  // for want of a worker
  double compile_seconds = 0;
};

// The same in Prometheus' text format (version 0.0.4), whatever the locale: what a scrape handler
// of a serving process returns.
KILN_EXPORT std::string prometheus_text(const RuntimeStats& stats);

}  // namespace kiln::inline v1

#endif  // KILN_STATS_H_
