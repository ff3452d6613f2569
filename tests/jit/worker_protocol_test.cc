#include "jit/worker_protocol.h"

#include <kiln/status.h>

#include "jit/frame_socket.h"
#include "tests/jit/jit_test_util.h"

#include <gtest/gtest.h>

#include <chrono>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <thread>

namespace kiln::jit {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

CompileRequest strange_request() {
  CompileRequest request = lean_request("sm_90a");
  request.source += std::string("\0 \xff \n", 5);
  request.headers.emplace_back("", "");
  request.options = {"-O3", ""};
  return request;
}

TEST(WorkerProtocolTest, MessagesComeBackAsTheyWere) {
  const CompileRequest request = strange_request();
  CompileRequest again;
  ASSERT_TRUE(decode(encode(request), again).ok());
  EXPECT_EQ(again.source_name, request.source_name);
  EXPECT_EQ(again.source, request.source);
  EXPECT_EQ(again.headers, request.headers);
  EXPECT_EQ(again.defines, request.defines);
  EXPECT_EQ(again.options, request.options);
  EXPECT_EQ(again.kernels, request.kernels);
  EXPECT_EQ(again.target, request.target);

  const CompileResult result{
      "cubin", std::string("\0\1", 2), {{"k", 12, -1, 0, 1ll << 40}}, "a warning"};
  CompileResult result_again;
  ASSERT_TRUE(decode(encode(result), result_again).ok());
  EXPECT_EQ(result_again.kind, result.kind);
  EXPECT_EQ(result_again.image, result.image);
  EXPECT_EQ(result_again.kernels, result.kernels);
  EXPECT_EQ(result_again.log, result.log);

  WorkerSetup setup{{"lib x.so", "/opt/\"cuda\"", "i"}, 1, 2, 3}, setup_again;
  ASSERT_TRUE(decode(encode(setup), setup_again).ok());
  EXPECT_EQ(setup_again.nvrtc.cuda_home, setup.nvrtc.cuda_home);
  EXPECT_EQ(setup_again.parent, 3);
}

TEST(WorkerProtocolTest, AFailureKeepsItsCodeKindAndMessage) {
  const absl::Status failure =
      with_kind(absl::InvalidArgumentError("no such type"), ErrorKind::compile_error);
  const absl::Status again = decode_failure(encode(failure));
  EXPECT_EQ(again.code(), failure.code());
  EXPECT_EQ(message_of(again), "no such type");
  EXPECT_TRUE(is_compile_error(again));
  EXPECT_TRUE(absl::IsDataLoss(decode_failure(encode(absl::OkStatus()))));
}

TEST(WorkerProtocolTest, AMessageCutAtAnyLengthIsRefused) {
  const std::string whole = encode(strange_request());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CompileRequest request;
    EXPECT_TRUE(absl::IsDataLoss(decode(whole.substr(0, size), request))) << size;
  }
  CompileRequest request;
  EXPECT_TRUE(absl::IsDataLoss(decode(whole + "x", request)));
}

TEST(WorkerProtocolTest, AHeaderWithAnyByteChangedIsRefusedOrItsPayloadIs) {
  const std::string payload = "payload";
  const std::string frame = encode_frame(MessageType::request, payload);
  for (std::size_t at = 0; at < frame.size(); ++at) {
    std::string changed = frame;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    const auto header = decode_header(changed.substr(0, kFrameHeaderBytes));
    const bool seen = !header.ok() ||
                      !check_payload(*header, changed.substr(kFrameHeaderBytes)).ok() ||
                      header->type != MessageType::request;
    EXPECT_TRUE(seen) << at;
  }
}

TEST(WorkerProtocolTest, AnotherVersionIsNamed) {
  std::string frame = encode_frame(MessageType::hello, "");
  frame[4] = 9;
  const auto header = decode_header(frame);
  EXPECT_TRUE(contains(header.status(), "want 1, got 9")) << header.status();
}

// A signal handler without SA_RESTART, as Go and the JVM install them, interrupts every call.
TEST(FrameSocketTest, SignalsDoNotInterruptAFrame) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  auto ends = make_socket_pair();
  ASSERT_TRUE(ends.ok());
  FrameSocket here(std::move(ends->first)), there(std::move(ends->second));
  const auto deadline = steady_clock::now() + std::chrono::seconds(60);
  const std::string payload(8 << 20, 'x');  // more than a socket holds
  absl::Status sent;
  absl::StatusOr<Frame> frame;
  std::thread sender([&] { sent = here.send(MessageType::request, payload, deadline); });
  std::thread receiver([&] {
    std::this_thread::sleep_for(milliseconds(20));
    frame = there.receive(deadline);
  });
  for (int i = 0; i < 200; ++i) {
    pthread_kill(sender.native_handle(), SIGUSR1);
    pthread_kill(receiver.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  sender.join();
  receiver.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(sent.ok()) << sent;
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->payload, payload);
}

TEST(FrameSocketTest, AClosedOtherSideIsAnErrorAndNoSignal) {
  auto ends = make_socket_pair();
  ASSERT_TRUE(ends.ok());
  FrameSocket here(std::move(ends->first));
  ends->second.reset();
  const auto deadline = steady_clock::now() + std::chrono::seconds(10);
  EXPECT_TRUE(absl::IsUnavailable(here.send(MessageType::request, "x", deadline)));
  EXPECT_TRUE(absl::IsUnavailable(here.receive(deadline).status()));
}

TEST(FrameSocketTest, SilenceEndsAtTheDeadline) {
  auto ends = make_socket_pair();
  ASSERT_TRUE(ends.ok());
  FrameSocket here(std::move(ends->first));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(here.receive(steady_clock::now() + milliseconds(30)).status()));
}

}  // namespace
}  // namespace kiln::jit
