#include "jit/frame_socket.h"

#include <kiln/status.h>

#include "base/file_system.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace kiln::jit {
namespace {
constexpr std::size_t kChunkBytes = 1 << 20;
// poll takes an int; who has more time than this asks again.
constexpr std::chrono::milliseconds kMaxPoll{60'000};
}  // namespace

absl::StatusOr<std::pair<Fd, Fd>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_status(errno, "socketpair");
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

absl::Status FrameSocket::wait(short events, SteadyTime deadline) {
  while (true) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero())
      return absl::DeadlineExceededError("worker socket: no answer by the deadline");
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<std::chrono::steady_clock::duration>(left, kMaxPoll));
    pollfd event = {.fd = fd_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&event, 1, static_cast<int>(ms.count()));
    if (ready > 0)
      return absl::OkStatus();  // an error or a hang-up is told by the call that follows
    if (ready < 0 && errno != EINTR) return errno_status(errno, "poll of a worker socket");
  }
}

absl::Status FrameSocket::send(MessageType type, std::string_view payload, SteadyTime deadline) {
  const std::string frame = encode_frame(type, payload);
  for (std::size_t at = 0; at < frame.size();) {
    KILN_RETURN_IF_ERROR(wait(POLLOUT, deadline));
    const ssize_t sent =
        ::send(fd_.get(), frame.data() + at, frame.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      at += static_cast<std::size_t>(sent);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return absl::UnavailableError("worker socket: the other side has closed it");
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno_status(errno, "send to a worker socket");
    }
  }
  return absl::OkStatus();
}

absl::Status FrameSocket::read(std::string& out, std::size_t size, SteadyTime deadline) {
  while (size > 0) {
    KILN_RETURN_IF_ERROR(wait(POLLIN, deadline));
    const std::size_t old = out.size();
    const std::size_t want = std::min(size, kChunkBytes);
    out.resize(old + want);
    const ssize_t got = ::recv(fd_.get(), out.data() + old, want, MSG_DONTWAIT);
    const int error = errno;
    out.resize(old + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && error == ECONNRESET))
      return absl::UnavailableError("worker socket: the other side has closed it");
    if (got < 0 && error != EINTR && error != EAGAIN)
      return errno_status(error, "receive from a worker socket");
    size -= static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return absl::OkStatus();
}

absl::StatusOr<Frame> FrameSocket::receive(SteadyTime deadline) {
  std::string bytes;
  KILN_RETURN_IF_ERROR(read(bytes, kFrameHeaderBytes, deadline));
  KILN_ASSIGN_OR_RETURN(const FrameHeader header, decode_header(bytes));
  Frame frame{.type = header.type};
  KILN_RETURN_IF_ERROR(read(frame.payload, header.size, deadline));
  KILN_RETURN_IF_ERROR(check_payload(header, frame.payload));
  return frame;
}

}  // namespace kiln::jit
