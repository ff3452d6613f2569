#include "cli/output_file.h"

#include <absl/strings/str_format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

// To `path`, on behalf of `named`.
absl::Status write(std::string_view what, const std::string& named, const std::string& path,
                   std::string_view bytes, const char* mode) {
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
                                                    what, named, std::strerror(error)));
}

}  // namespace

absl::Status write_output(std::string_view what, const std::string& path, std::string_view bytes) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  // A link stays one, and what it leads to is exchanged.
  const fs::path target = fs::exists(there) ? fs::canonical(path, none) : fs::path(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (path == "-" || (fs::exists(there) && !fs::is_regular_file(there)) ||
      ::access(folder.c_str(), W_OK) != 0)
    return write(what, path, path, bytes, "wb");
  const std::string beside = absl::StrFormat("%s.%d.tmp", target.string(), ::getpid());
  absl::Status written = write(what, path, beside, bytes, "wb");
  std::error_code failed;
  if (written.ok()) {
    if (fs::exists(there)) fs::permissions(beside, there.permissions(), none);
    fs::rename(beside, target, failed);
    if (!failed) return absl::OkStatus();
    written = absl::InvalidArgumentError(absl::StrFormat(
        "%s must be a file that can be written: %s: %s", what, path, failed.message()));
  }
  fs::remove(beside, none);
  return written;
}

absl::Status check_output(std::string_view what, const std::string& path) {
  return write(what, path, path, "", "ab");
}

}  // namespace kiln::cli
