#ifndef KILN_TESTS_SUPPORT_CHILD_H_
#define KILN_TESTS_SUPPORT_CHILD_H_

#include <string>
#include <sys/types.h>
#include <vector>

namespace kiln::testing {

// A running program whose standard output is read here. Killed and waited for by the destructor.
// Move-only.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  std::string read_line();  // without the newline; empty at the end
  void send(int signal);
  int wait();  // exit status, or 128 + signal

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_CHILD_H_
