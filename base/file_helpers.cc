#include <kiln/status.h>

#include "base/file_system.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

absl::StatusOr<std::string> read_all(FileSystem& fs, const Fd& fd, std::int64_t max_bytes) {
  KILN_ASSIGN_OR_RETURN(const FileInfo info, fs.stat(fd));
  const auto too_big = [&](std::int64_t size) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("a file to read must have at most %d bytes, got %d", max_bytes, size));
  };
  if (info.size > max_bytes) return too_big(info.size);
  // One byte more than stat said: the usual end is seen without a second buffer; a file that grows
  // is read on.
  std::string out(static_cast<std::size_t>(std::max<std::int64_t>(info.size, 0)) + 1, '\0');
  std::size_t size = 0;
  while (true) {
    if (size == out.size()) out.resize(out.size() * 2);
    KILN_ASSIGN_OR_RETURN(const std::size_t n, fs.read(fd, out.data() + size, out.size() - size));
    if (n == 0) break;
    size += n;
    if (static_cast<std::int64_t>(size) > max_bytes)
      return too_big(static_cast<std::int64_t>(size));
  }
  out.resize(size);
  return out;
}

absl::Status write_all(FileSystem& fs, const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    KILN_ASSIGN_OR_RETURN(const std::size_t n, fs.write(fd, bytes));
    if (n == 0) return absl::UnavailableError("write: must make progress, got 0 bytes written");
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status make_dirs(FileSystem& fs, const std::string& path) {
  const absl::StatusOr<FileInfo> there = fs.stat(path);
  if (there.ok()) return absl::OkStatus();
  if (!absl::IsNotFound(there.status())) return there.status();
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) {
    KILN_RETURN_IF_ERROR(make_dirs(fs, path.substr(0, slash)));
  }
  absl::Status made = fs.make_dir(path);
  // Another process may have been first.
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

}  // namespace kiln
