#ifndef KILN_JIT_FRAME_SOCKET_H_
#define KILN_JIT_FRAME_SOCKET_H_

#include <kiln/export.h>

#include "base/fd.h"
#include "jit/worker_protocol.h"

#include <absl/status/statusor.h>

#include <chrono>
#include <string>

namespace kiln::jit {

// Deadlines between processes: not moved by a change of the date.
using SteadyTime = std::chrono::steady_clock::time_point;

// Frames over a stream socket. Signal handlers may interrupt any of its calls; none of them raises
// SIGPIPE. One thread at a time may send, and one receive.
//
// Errors: Unavailable (the other side has closed), DeadlineExceeded, DataLoss (not a frame).
class KILN_EXPORT FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(Fd fd) : fd_(std::move(fd)) {}

  absl::Status send(MessageType type, std::string_view payload, SteadyTime deadline);
  absl::StatusOr<Frame> receive(SteadyTime deadline);
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  // Waits until `events` happen.
  absl::Status wait(short events, SteadyTime deadline);
  // Appends `size` bytes to `out`.
  absl::Status read(std::string& out, std::size_t size, SteadyTime deadline);

  Fd fd_;
};

// Two connected sockets, both close-on-exec.
KILN_EXPORT absl::StatusOr<std::pair<Fd, Fd>> make_socket_pair();

}  // namespace kiln::jit

#endif  // KILN_JIT_FRAME_SOCKET_H_
