#include "cli/output_file.h"

#include <absl/strings/str_format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kiln::cli {
namespace {

absl::Status write(std::string_view what, const std::string& path, std::string_view bytes,
                   const char* mode) {
  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), mode);
  bool written =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  if (file != nullptr && (file == stdout ? std::fflush(file) : std::fclose(file)) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s must be a file that can be written: %s: %s",
                                                    what, path, std::strerror(error)));
}

}  // namespace

absl::Status write_output(std::string_view what, const std::string& path, std::string_view bytes) {
  return write(what, path, bytes, "wb");
}

absl::Status check_output(std::string_view what, const std::string& path) {
  return write(what, path, "", "ab");
}

}  // namespace kiln::cli
