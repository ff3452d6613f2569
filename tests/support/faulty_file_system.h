#ifndef KILN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
#define KILN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_

#include "base/file_system.h"
#include "base/mutex.h"

#include <absl/base/thread_annotations.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing {

// One call as a fault rule sees it. `index` counts all calls from 1; `writes` tells those that
// change something.
struct FileCall {
  int index = 0;
  std::string_view name;
  bool writes = false;
};

// The real file system, in which chosen calls fail before they reach it. Thread-safe.
class FaultyFileSystem final : public FileSystem {
 public:
  // The errno with which the call fails; 0 lets it through. For a write, kHalf writes half of the
  // bytes and says so.
  using Rule = std::function<int(const FileCall&)>;
  static constexpr int kHalf = -1;

  void set_rule(Rule rule);
  // Fails the n-th call from now (from 1), and all after it when `and_after`.
  void fail_at(int n, int error, bool and_after = false);
  // Fails every call that would change something: a read-only or full file system.
  void fail_writes(int error);
  void heal() { set_rule({}); }
  int calls() const;

  absl::StatusOr<Fd> open_read(const std::string& path) override;
  absl::StatusOr<Fd> create(const std::string& path) override;
  absl::StatusOr<std::size_t> read(const Fd& fd, char* data, std::size_t size) override;
  absl::StatusOr<std::size_t> write(const Fd& fd, std::string_view bytes) override;
  absl::Status sync(const Fd& fd) override;
  absl::StatusOr<FileInfo> stat(const Fd& fd) override;
  absl::StatusOr<FileInfo> stat(const std::string& path) override;
  absl::Status rename(const std::string& from, const std::string& to) override;
  absl::Status link(const std::string& from, const std::string& to) override;
  absl::Status unlink(const std::string& path) override;
  absl::Status make_dir(const std::string& path) override;
  absl::Status sync_dir(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> list_dir(const std::string& path) override;
  absl::Status touch(const Fd& fd) override;
  absl::Status set_mode(const Fd& fd, std::uint32_t mode) override;
  absl::StatusOr<Mapping> map(const Fd& fd, std::size_t size) override;

 private:
  int verdict(std::string_view name, bool writes);

  mutable Mutex mutex_;
  Rule rule_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
