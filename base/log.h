#ifndef KILN_BASE_LOG_H_
#define KILN_BASE_LOG_H_

#include <kiln/export.h>
#include <kiln/log.h>

#include <string_view>

namespace kiln {

// Writes one line to the sink in force. Never throws, never blocks on anything but the sink.
KILN_EXPORT void log(LogLevel level, std::string_view message);
// The same, once per `what` in this process: for trouble that would repeat with every call.
KILN_EXPORT void log_once(LogLevel level, std::string_view what, std::string_view message);

}  // namespace kiln

#endif  // KILN_BASE_LOG_H_
