#ifndef KILN_CLI_OUTPUT_FILE_H_
#define KILN_CLI_OUTPUT_FILE_H_

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cli {

// Writes `bytes` into the file that the option `what` names; "-" is stdout. A file has all of them
// or what it had before: they are written beside it and renamed, where the folder allows that.
// InvalidArgument names both where it cannot be done.
absl::Status write_output(std::string_view what, const std::string& path, std::string_view bytes);
// Writes `path` anew, beside it and renamed: who has the old one open or mapped keeps it whole.
absl::Status exchange_file(const std::string& path, std::string_view bytes, std::uint32_t mode);
// Whether it could be, before work of hours: makes an empty file where there is none.
absl::Status check_output(std::string_view what, const std::string& path);

}  // namespace kiln::cli

#endif  // KILN_CLI_OUTPUT_FILE_H_
