#include <kiln/stats.h>

#include <charconv>
#include <string_view>

namespace kiln::inline v1 {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

// Shortest that reads back as the same; no locale is asked.
std::string text_of(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "NaN";
}

class Writer {
 public:
  // The head of a metric, then its samples.
  Writer& metric(std::string_view name, std::string_view help) {
    name_ = "kiln_" + std::string(name);
    out += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " counter\n";
    return *this;
  }
  template <class Number>
  Writer& sample(Number value, std::string_view label = "", std::string_view label_value = "") {
    out += name_;
    if (!label.empty()) out += "{" + std::string(label) + "=\"" + std::string(label_value) + "\"}";
    out += " " + text_of(value) + "\n";
    return *this;
  }
  std::string out;

 private:
  std::string name_;
};

}  // namespace

std::string prometheus_text(const RuntimeStats& s) {
  Writer w;
  w.metric("cache_hits_total", "Artifacts found, by the tier that had them.")
      .sample(s.memory_hits, "tier", "memory")
      .sample(s.disk_hits, "tier", "disk")
      .sample(s.layer_hits, "tier", "layer")
      .sample(s.remote_hits, "tier", "remote");
  w.metric("cache_misses_total", "Artifacts that no tier had.").sample(s.cache_misses);
  w.metric("cache_stored_total", "Artifacts stored.").sample(s.cache_stored);
  w.metric("cache_evicted_total", "Artifacts removed to keep the cache within its limit.")
      .sample(s.cache_evicted);
  w.metric("cache_quarantined_total", "Damaged files set aside.").sample(s.cache_quarantined);
  w.metric("cache_errors_total", "Failures of a tier, which are no misses.").sample(s.cache_errors);
  w.metric("remote_requests_total", "What came of asking the remote cache.")
      .sample(s.remote_hits, "result", "hit")
      .sample(s.remote_misses, "result", "miss")
      .sample(s.remote_damaged, "result", "damaged")
      .sample(s.remote_errors, "result", "error")
      .sample(s.remote_skipped, "result", "skipped");
  w.metric("remote_stored_total", "Artifacts written to the remote cache.").sample(s.remote_stored);
  w.metric("remote_dropped_total", "Writes to the remote cache given up for want of room.")
      .sample(s.remote_dropped);
  w.metric("cache_read_bytes_total", "Bytes read from disk, layers and the remote cache.")
      .sample(s.cache_bytes_read);
  w.metric("cache_written_bytes_total", "Bytes written to disk and the remote cache.")
      .sample(s.cache_bytes_written);
  w.metric("compilations_total", "Programs compiled.").sample(s.compilations);
  w.metric("compile_failures_total", "Compilations that failed.").sample(s.compile_failures);
  w.metric("compile_seconds_total", "Time spent compiling.").sample(s.compile_seconds);
  w.metric("compiled_in_process_total", "Compilations done in this process for want of a worker.")
      .sample(s.compiled_in_process);
  w.metric("compile_workers_started_total", "Compile workers started.").sample(s.workers_started);
  w.metric("compile_workers_lost_total", "Compile workers lost to a crash or a limit.")
      .sample(s.workers_lost);
  w.metric("selections_total", "Misses that asked implementations.").sample(s.selections);
  w.metric("stand_ins_total", "Calls served by another implementation while theirs compiled.")
      .sample(s.stand_ins);
  w.metric("entries_built_total", "Kernel entries built.").sample(s.entries_built);
  w.metric("entries_dropped_total", "Kernel entries dropped to keep within the limit.")
      .sample(s.entries_dropped);
  w.metric("loads_total", "Images loaded on a device.").sample(s.loads);
  w.metric("unloads_total", "Images unloaded again.").sample(s.unloads);
  w.metric("input_copies_total", "Inputs copied to be contiguous.").sample(s.input_copies);
  w.metric("sweeps_total", "Tuning sweeps run.").sample(s.sweeps);
  w.metric("tuned_loads_total", "Kernels loaded with a stored winner.").sample(s.tuned_loads);
  w.metric("calls_recorded_total", "Distinct calls written to the file of recorded calls.")
      .sample(s.calls_recorded);
  w.metric("device_fact_reads_total", "Devices asked for their facts.").sample(s.fact_reads);
  return w.out;
}

}  // namespace kiln::inline v1
