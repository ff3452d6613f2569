#ifndef KILN_BASE_FD_H_
#define KILN_BASE_FD_H_

#include <kiln/export.h>

#include <utility>

namespace kiln {

// Owns a file descriptor; -1 means none. Move-only; one thread at a time.
class KILN_EXPORT Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // Closes what is held. An error of close() is ignored: who must know that data is kept calls
  // fsync first.
  void reset();

 private:
  int fd_ = -1;
};

}  // namespace kiln

#endif  // KILN_BASE_FD_H_
