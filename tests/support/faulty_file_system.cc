#include "tests/support/faulty_file_system.h"

#include <errno.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::testing {

void FaultyFileSystem::set_rule(Rule rule) {
  MutexLock lock(mutex_);
  rule_ = std::move(rule);
  calls_ = 0;
}

void FaultyFileSystem::fail_at(int n, int error, bool and_after) {
  set_rule([=](const FileCall& call) {
    return call.index == n || (and_after && call.index > n) ? error : 0;
  });
}

void FaultyFileSystem::fail_writes(int error) {
  set_rule([=](const FileCall& call) { return call.writes ? error : 0; });
}

int FaultyFileSystem::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

int FaultyFileSystem::verdict(std::string_view name, bool writes) {
  MutexLock lock(mutex_);
  ++calls_;
  return rule_ ? rule_({calls_, name, writes}) : 0;
}

absl::StatusOr<Fd> FaultyFileSystem::open_read(const std::string& path) {
  if (const int error = verdict("open_read", false); error > 0)
    return errno_status(error, "injected open_read");
  return real_file_system().open_read(path);
}

absl::StatusOr<Fd> FaultyFileSystem::create(const std::string& path) {
  if (const int error = verdict("create", true); error > 0)
    return errno_status(error, "injected create");
  return real_file_system().create(path);
}

absl::StatusOr<std::size_t> FaultyFileSystem::read(const Fd& fd, char* data, std::size_t size) {
  if (const int error = verdict("read", false); error > 0)
    return errno_status(error, "injected read");
  return real_file_system().read(fd, data, size);
}

absl::Status FaultyFileSystem::sync(const Fd& fd) {
  if (const int error = verdict("sync", true); error > 0)
    return errno_status(error, "injected sync");
  return real_file_system().sync(fd);
}

absl::StatusOr<FileInfo> FaultyFileSystem::stat(const Fd& fd) {
  if (const int error = verdict("stat", false); error > 0)
    return errno_status(error, "injected stat");
  return real_file_system().stat(fd);
}

absl::StatusOr<FileInfo> FaultyFileSystem::stat(const std::string& path) {
  if (const int error = verdict("stat", false); error > 0)
    return errno_status(error, "injected stat");
  return real_file_system().stat(path);
}

absl::Status FaultyFileSystem::rename(const std::string& from, const std::string& to) {
  if (const int error = verdict("rename", true); error > 0)
    return errno_status(error, "injected rename");
  return real_file_system().rename(from, to);
}

absl::Status FaultyFileSystem::link(const std::string& from, const std::string& to) {
  if (const int error = verdict("link", true); error > 0)
    return errno_status(error, "injected link");
  return real_file_system().link(from, to);
}

absl::Status FaultyFileSystem::unlink(const std::string& path) {
  if (const int error = verdict("unlink", true); error > 0)
    return errno_status(error, "injected unlink");
  return real_file_system().unlink(path);
}

absl::Status FaultyFileSystem::make_dir(const std::string& path) {
  if (const int error = verdict("make_dir", true); error > 0)
    return errno_status(error, "injected make_dir");
  return real_file_system().make_dir(path);
}

absl::Status FaultyFileSystem::sync_dir(const std::string& path) {
  if (const int error = verdict("sync_dir", true); error > 0)
    return errno_status(error, "injected sync_dir");
  return real_file_system().sync_dir(path);
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::list_dir(const std::string& path) {
  if (const int error = verdict("list_dir", false); error > 0)
    return errno_status(error, "injected list_dir");
  return real_file_system().list_dir(path);
}

absl::Status FaultyFileSystem::touch(const Fd& fd) {
  if (const int error = verdict("touch", true); error > 0)
    return errno_status(error, "injected touch");
  return real_file_system().touch(fd);
}

absl::Status FaultyFileSystem::set_mode(const Fd& fd, std::uint32_t mode) {
  if (const int error = verdict("set_mode", true); error > 0)
    return errno_status(error, "injected set_mode");
  return real_file_system().set_mode(fd, mode);
}

absl::StatusOr<Mapping> FaultyFileSystem::map(const Fd& fd, std::size_t size) {
  if (const int error = verdict("map", false); error > 0)
    return errno_status(error, "injected map");
  return real_file_system().map(fd, size);
}

absl::StatusOr<std::size_t> FaultyFileSystem::write(const Fd& fd, std::string_view bytes) {
  const int error = verdict("write", true);
  if (error > 0) return errno_status(error, "injected write");
  if (error == kHalf && bytes.size() > 1) bytes = bytes.substr(0, bytes.size() / 2);
  return real_file_system().write(fd, bytes);
}

}  // namespace kiln::testing
