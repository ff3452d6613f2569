#ifndef KILN_BASE_FILE_SYSTEM_H_
#define KILN_BASE_FILE_SYSTEM_H_

#include <kiln/export.h>

#include "base/fd.h"
#include "base/mapping.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// "what: <error text> (errno N)" with a code by kind: NotFound (ENOENT, ENOTDIR), AlreadyExists,
// PermissionDenied (EACCES, EPERM, EROFS), ResourceExhausted (ENOSPC, EDQUOT, EMFILE, ENOMEM),
// InvalidArgument (ENAMETOOLONG, ELOOP), Unavailable (ESTALE, EBUSY, EIO, EAGAIN, EINTR), else
// Internal. The number is kept: `errno_of`.
KILN_EXPORT absl::Status errno_status(int saved_errno, std::string_view what);
// The errno that `status` was made of; 0 when it was made otherwise.
KILN_EXPORT int errno_of(const absl::Status& status);

enum class FileType { regular, directory, symlink, other };

struct FileInfo {
  FileType type = FileType::other;
  std::uint32_t owner = 0;  // user id
  std::uint32_t group = 0;  // group id
  std::uint32_t mode = 0;   // permission bits, 07777
  std::int64_t size = 0;    // bytes
  absl::Time modified;
  std::uint64_t device = 0, inode = 0;  // together: which file this is, whatever its name
};

// The only place with POSIX file calls; each method is one call (loops over EINTR apart), so that a
// test can fail any one of them. Paths are bytes: no encoding is assumed. All files are opened
// close-on-exec. Thread-safe. Errors: those of errno_status, naming call and path.
class KILN_EXPORT FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens for reading; a symlink as the last part is refused (ELOOP), and a FIFO does not block.
  virtual absl::StatusOr<Fd> open_read(const std::string& path) = 0;
  // Creates for writing with mode 0600; AlreadyExists for whatever is there, a symlink included.
  virtual absl::StatusOr<Fd> create(const std::string& path) = 0;
  // Up to `size` bytes from the descriptor's position; 0 at the end.
  virtual absl::StatusOr<std::size_t> read(const Fd& fd, char* data, std::size_t size) = 0;
  // Writes some of `bytes`, at least one; says how many.
  virtual absl::StatusOr<std::size_t> write(const Fd& fd, std::string_view bytes) = 0;
  virtual absl::Status sync(const Fd& fd) = 0;
  virtual absl::StatusOr<FileInfo> stat(const Fd& fd) = 0;
  // Of the thing itself: links are not followed.
  virtual absl::StatusOr<FileInfo> stat(const std::string& path) = 0;
  virtual absl::Status rename(const std::string& from, const std::string& to) = 0;
  // A second name for `from`; AlreadyExists when `to` is there.
  virtual absl::Status link(const std::string& from, const std::string& to) = 0;
  virtual absl::Status unlink(const std::string& path) = 0;
  // One folder, mode 0700. AlreadyExists when something is there.
  virtual absl::Status make_dir(const std::string& path) = 0;
  // Makes a folder's entries durable.
  virtual absl::Status sync_dir(const std::string& path) = 0;
  // Names in a folder, "." and ".." left out, sorted.
  virtual absl::StatusOr<std::vector<std::string>> list_dir(const std::string& path) = 0;
  // Sets the modification time to the file system's own now.
  virtual absl::Status touch(const Fd& fd) = 0;
  // Permission bits, whatever the process's umask is.
  virtual absl::Status set_mode(const Fd& fd, std::uint32_t mode) = 0;
  // The first `size` bytes, read-only. The descriptor may be closed afterwards.
  virtual absl::StatusOr<Mapping> map(const Fd& fd, std::size_t size) = 0;
};

// The real one; lives as long as the process.
KILN_EXPORT FileSystem& real_file_system();

// All bytes of an open file. ResourceExhausted when there are more than `max_bytes`.
KILN_EXPORT absl::StatusOr<std::string> read_all(FileSystem& fs, const Fd& fd,
                                                 std::int64_t max_bytes);
KILN_EXPORT absl::Status write_all(FileSystem& fs, const Fd& fd, std::string_view bytes);
// The folder and those above it, as far as they are missing.
KILN_EXPORT absl::Status make_dirs(FileSystem& fs, const std::string& path);
// `path` if it starts with '/', else joined to the current folder. Error when there is no current
// folder any more.
KILN_EXPORT absl::StatusOr<std::string> absolute_path(const std::string& path);
// "<pid>-<random>-<counter>" in hex: no other process or thread makes the same, also not on another
// host.
KILN_EXPORT std::string unique_suffix();

}  // namespace kiln

#endif  // KILN_BASE_FILE_SYSTEM_H_
