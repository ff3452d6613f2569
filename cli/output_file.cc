#include "cli/output_file.h"

#include <kiln/status.h>

#include "base/file_system.h"

#include <absl/strings/str_format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

absl::Status cannot(std::string_view what, const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s must be a file that can be written: %s: %s", what, path, why));
}

absl::Status write_into(std::string_view what, const std::string& path, std::string_view bytes,
                        const char* mode) {
  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), mode);
  bool written =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  if (file != nullptr && (file == stdout ? std::fflush(file) : std::fclose(file)) != 0 && written) {
    written = false;
    error = errno;
  }
  return written ? absl::OkStatus() : cannot(what, path, std::strerror(error));
}

// What a new file gets.
std::uint32_t default_mode() {
  const mode_t mask = ::umask(0);  // there is no way to ask alone
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

absl::Status exchange_file(const std::string& path, std::string_view bytes, std::uint32_t mode) {
  FileSystem& files = real_file_system();
  const std::string temp = absl::StrFormat("%s.tmp.%s", path, unique_suffix());
  const auto write = [&]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const Fd fd, files.create(temp));
    KILN_RETURN_IF_ERROR(write_all(files, fd, bytes));
    KILN_RETURN_IF_ERROR(files.set_mode(fd, mode));
    return files.sync(fd);
  };
  absl::Status status = write();
  if (status.ok()) status = files.rename(temp, path);
  if (!status.ok()) files.unlink(temp).IgnoreError();
  return status;
}

absl::Status write_output(std::string_view what, const std::string& path, std::string_view bytes) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  // A link stays one, and what it leads to is exchanged.
  const fs::path target = fs::exists(there) ? fs::canonical(path, none) : fs::path(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (path == "-" || (fs::exists(there) && !fs::is_regular_file(there)) ||
      ::access(folder.c_str(), W_OK) != 0)
    return write_into(what, path, bytes, "wb");
  const auto mode =
      fs::exists(there) ? static_cast<std::uint32_t>(there.permissions()) : default_mode();
  const absl::Status status = exchange_file(target.string(), bytes, mode);
  return status.ok() ? status : cannot(what, path, message_of(status));
}

absl::Status check_output(std::string_view what, const std::string& path) {
  return write_into(what, path, "", "ab");
}

}  // namespace kiln::cli
