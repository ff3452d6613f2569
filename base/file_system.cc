#include "base/file_system.h"

#include <absl/strings/cord.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace kiln {
namespace {

constexpr char kErrnoUrl[] = "kiln/errno";

absl::StatusCode code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
    case EMLINK:
      return absl::StatusCode::kResourceExhausted;
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
    case EISDIR:
      return absl::StatusCode::kInvalidArgument;
    case ESTALE:
    case EBUSY:
    case EIO:
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status failed(int error, const char* call, const std::string& path) {
  return errno_status(error, absl::StrFormat("%s %s", call, path));
}

// Calls `f` until it ends otherwise than by a signal.
template <typename F>
auto retry(F f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

FileInfo info_of(const struct ::stat& st) {
  FileInfo info;
  if (S_ISREG(st.st_mode)) info.type = FileType::regular;
  if (S_ISDIR(st.st_mode)) info.type = FileType::directory;
  if (S_ISLNK(st.st_mode)) info.type = FileType::symlink;
  info.owner = st.st_uid;
  info.group = st.st_gid;
  info.mode = st.st_mode & 07777;
  info.size = st.st_size;
  info.modified = absl::TimeFromTimespec(st.st_mtim);
  info.device = st.st_dev;
  info.inode = st.st_ino;
  return info;
}

class RealFileSystem final : public FileSystem {
 public:
  absl::StatusOr<Fd> open_read(const std::string& path) override {
    return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }

  absl::StatusOr<Fd> create(const std::string& path) override {
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  }

  absl::StatusOr<std::size_t> read(const Fd& fd, char* data, std::size_t size) override {
    const ssize_t n = retry([&] { return ::read(fd.get(), data, size); });
    if (n < 0) return errno_status(errno, "read");
    return static_cast<std::size_t>(n);
  }

  absl::StatusOr<std::size_t> write(const Fd& fd, std::string_view bytes) override {
    const ssize_t n = retry([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (n < 0) return errno_status(errno, "write");
    return static_cast<std::size_t>(n);
  }

  absl::Status sync(const Fd& fd) override {
    // Not retried after EINTR: a second fsync may report success for pages the first one dropped.
    if (::fsync(fd.get()) != 0) return errno_status(errno, "fsync");
    return absl::OkStatus();
  }

  absl::StatusOr<FileInfo> stat(const Fd& fd) override {
    struct ::stat st;
    if (::fstat(fd.get(), &st) != 0) return errno_status(errno, "fstat");
    return info_of(st);
  }

  absl::StatusOr<FileInfo> stat(const std::string& path) override {
    struct ::stat st;
    if (::lstat(path.c_str(), &st) != 0) return failed(errno, "lstat", path);
    return info_of(st);
  }

  absl::Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return failed(errno, "rename", absl::StrFormat("%s to %s", from, to));
    }
    return absl::OkStatus();
  }

  absl::Status link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) return failed(errno, "link", to);
    return absl::OkStatus();
  }

  absl::Status unlink(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return failed(errno, "unlink", path);
    return absl::OkStatus();
  }

  absl::Status make_dir(const std::string& path) override {
    if (::mkdir(path.c_str(), 0700) != 0) return failed(errno, "mkdir", path);
    return absl::OkStatus();
  }

  absl::Status sync_dir(const std::string& path) override {
    absl::StatusOr<Fd> fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!fd.ok()) return fd.status();
    // Some network and FUSE file systems know no fsync of a folder (EINVAL): nothing more can be
    // done there.
    if (::fsync(fd->get()) != 0 && errno != EINVAL) return failed(errno, "fsync", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> list_dir(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
    if (dir == nullptr) return failed(errno, "opendir", path);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) {
        if (errno != 0) return failed(errno, "readdir", path);
        break;
      }
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status touch(const Fd& fd) override {
    if (::futimens(fd.get(), nullptr) != 0) return errno_status(errno, "futimens");
    return absl::OkStatus();
  }

  absl::Status set_mode(const Fd& fd, std::uint32_t mode) override {
    if (::fchmod(fd.get(), mode) != 0) return errno_status(errno, "fchmod");
    return absl::OkStatus();
  }

  absl::StatusOr<Mapping> map(const Fd& fd, std::size_t size) override {
    if (size == 0) return Mapping();
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (data == MAP_FAILED) return errno_status(errno, "mmap");
    return Mapping(data, size);
  }

 private:
  static absl::StatusOr<Fd> open(const std::string& path, int flags) {
    const int fd = retry([&] { return ::open(path.c_str(), flags, 0600); });
    if (fd < 0) return failed(errno, "open", path);
    return Fd(fd);
  }
};

}  // namespace

absl::Status errno_status(int saved_errno, std::string_view what) {
  char buffer[256];
  // The GNU form: returns the text, which need not be in the buffer. Safe beside other threads.
  const char* text = ::strerror_r(saved_errno, buffer, sizeof buffer);
  absl::Status status(code_of(saved_errno),
                      absl::StrFormat("%s: %s (errno %d)", what, text, saved_errno));
  status.SetPayload(kErrnoUrl, absl::Cord(absl::StrFormat("%d", saved_errno)));
  return status;
}

int errno_of(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrnoUrl);
  int value = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &value)) return 0;
  return value;
}

FileSystem& real_file_system() {
  static RealFileSystem* const instance = new RealFileSystem;
  return *instance;
}

absl::StatusOr<std::string> absolute_path(const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  const std::unique_ptr<char, void (*)(void*)> cwd(::getcwd(nullptr, 0), &::free);
  if (cwd == nullptr) return errno_status(errno, "getcwd");
  return absl::StrFormat("%s/%s", cwd.get(), path);
}

std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t random = 0;
  // Drawn each time, not once: a forked child must not go on with its parent's number.
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    random = static_cast<std::uint64_t>(now.tv_sec) * 1000000007u +
             static_cast<std::uint64_t>(now.tv_nsec);
  }
  return absl::StrFormat("%x-%016x-%x", ::getpid(), random, counter.fetch_add(1));
}

}  // namespace kiln
