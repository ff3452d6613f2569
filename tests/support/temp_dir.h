#ifndef KILN_TESTS_SUPPORT_TEMP_DIR_H_
#define KILN_TESTS_SUPPORT_TEMP_DIR_H_

#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing {

// A fresh folder under $TMPDIR or /tmp, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);  // aborts when it cannot
void write_file(const std::string& path, std::string_view bytes);
bool exists(const std::string& path);
// Paths of all regular files below `path`, sorted.
std::vector<std::string> files_below(const std::string& path);

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_TEMP_DIR_H_
