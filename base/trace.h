#ifndef KILN_BASE_TRACE_H_
#define KILN_BASE_TRACE_H_

#include <kiln/export.h>

#include "base/fd.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// Spans of time in a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON array
// form of the Trace Event Format, an event a line, each written whole when it ends. The closing
// bracket is left out, as the format allows, so that a process that is killed leaves a file that
// can be read, and several processes may append to one file. Thread-safe.
class KILN_EXPORT Trace {
 public:
  // Null, and one warning, when the file cannot be opened. An empty path: null.
  static std::unique_ptr<Trace> open(const std::string& path);
  // `begin` and `end` in microseconds of now_us.
  void write(std::string_view name, std::string_view detail, double begin_us, double end_us);
  // Of the clock that all processes of a machine share.
  static double now_us();

 private:
  explicit Trace(Fd file) : file_(std::move(file)) {}
  const Fd file_;  // opened for appending: a line is one write
};

// A span that ends with the scope: an event of `trace`, if there is one, and an NVTX range of the
// domain "kiln", which costs next to nothing unless a profiler listens.
class KILN_EXPORT TraceSpan {
 public:
  // `name` is a literal.
  TraceSpan(Trace* trace, std::string_view name, std::string_view detail);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* const trace_;
  const std::string_view name_;
  const std::string detail_;
  const double begin_us_;
};

}  // namespace kiln

#endif  // KILN_BASE_TRACE_H_
