// A program that behaves as a compile worker must not. How is the end of its own name, after the
// last dot: tests give it names by links.
#include "jit/frame_socket.h"
#include "jit/nvrtc_compiler.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::jit;

const SteadyTime kForever = std::chrono::steady_clock::now() + std::chrono::hours(1);

void send_raw(std::string_view bytes) { (void)!::write(0, bytes.data(), bytes.size()); }

// Answers the setup as a right worker does, and waits for a request.
FrameSocket shake_hands() {
  FrameSocket socket{Fd(::fcntl(0, F_DUPFD_CLOEXEC, 3))};
  const auto setup = socket.receive(kForever);
  WorkerSetup parsed;
  if (!setup.ok() || !decode(setup->payload, parsed).ok()) std::exit(9);
  const auto compiler = make_nvrtc_compiler(parsed.nvrtc);
  if (!socket.send(MessageType::hello, encode(*compiler->id()), kForever).ok()) std::exit(9);
  if (!socket.receive(kForever).ok()) std::exit(9);
  return socket;
}

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[0];
  const std::string mode = name.substr(name.rfind('.') + 1);
  if (mode == "exits") {
    std::fputs("no libfoo.so anywhere\n", stderr);
    return 7;
  }
  if (mode == "mute") ::pause();
  if (mode == "garbage") {
    send_raw("Hello, world! I am certainly not a compile worker.\n");
    ::pause();
  }
  if (mode == "older") {
    std::string frame = encode_frame(MessageType::hello, encode(CompilerId{}));
    frame[4] = 99;
    send_raw(frame);
    ::pause();
  }
  if (mode == "other") {  // another NVRTC
    send_raw(encode_frame(MessageType::hello, encode(CompilerId{"nvrtc", "1.0-other", "1000"})));
    FrameSocket socket{Fd(::fcntl(0, F_DUPFD_CLOEXEC, 3))};
    (void)socket.receive(kForever);  // the setup
    (void)socket.receive(kForever);  // a request, or the end
    return 5;
  }
  FrameSocket socket = shake_hands();
  if (mode == "nonsense") {
    send_raw(
        "\x7f"
        "ELF, or what looks like it, but not a frame of any kind");
  } else if (mode == "flipped") {
    std::string frame =
        encode_frame(MessageType::result, encode(CompileResult{"cubin", "image", {}, ""}));
    frame.back() ^= 1;
    send_raw(frame);
  } else if (mode == "torn") {
    const std::string frame =
        encode_frame(MessageType::result, encode(CompileResult{"cubin", "image", {}, ""}));
    send_raw(frame.substr(0, frame.size() / 2));
    return 3;
  } else if (mode == "crashes") {
    std::fputs("about to crash\n", stderr);
    std::abort();
  }
  ::pause();  // "hangs", and what the above leave
}
