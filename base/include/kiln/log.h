#ifndef KILN_LOG_H_
#define KILN_LOG_H_

#include <kiln/export.h>

#include <functional>
#include <string_view>

namespace kiln::inline v1 {

enum class LogLevel { debug, info, warning, error };

// Where Kiln's log lines go; the library itself never prints otherwise. Called from any thread,
// also from several at once; must not call back into Kiln. The default writes lines of level
// warning and above to stderr through spdlog (KILN_LOG_LEVEL=debug|info|warning|error|off sets
// another level).
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

// Replaces the sink; an empty one brings the default back. Thread-safe.
KILN_EXPORT void set_log_sink(LogSink sink);

}  // namespace kiln::inline v1

#endif  // KILN_LOG_H_
