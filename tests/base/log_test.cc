#include "base/log.h"

#include "base/mutex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class LogTest : public ::testing::Test {
 protected:
  void capture() {
    set_log_sink([this](LogLevel, std::string_view message) {
      MutexLock lock(mutex_);
      lines_.emplace_back(message);
    });
  }
  void TearDown() override { set_log_sink({}); }

  Mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(LogTest, TheHostsSinkGetsEveryLevel) {
  capture();
  log(LogLevel::debug, "d");
  log(LogLevel::error, "e");
  EXPECT_THAT(lines_, ElementsAre("d", "e"));
}

TEST_F(LogTest, OnceIsOncePerSubject) {
  capture();
  log_once(LogLevel::warning, "LogTest/1", "first");
  log_once(LogLevel::warning, "LogTest/1", "second");
  log_once(LogLevel::warning, "LogTest/2", "other");
  EXPECT_THAT(lines_, ElementsAre("first", "other"));
}

TEST_F(LogTest, TheDefaultSinkWritesWarningsOnlyAndBracesAsTheyAre) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::info, "quiet line");
  log(LogLevel::warning, "loud {line} 100%s");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("[warning] loud {line} 100%s"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
}

TEST_F(LogTest, TheDefaultSinkIsCommandedByNoMessage) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::warning, "got \x1b[31mred" + std::string(100000, 'x'));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("got \\x1b[31mred"));
  EXPECT_LT(text.size(), 2000u);
}

TEST_F(LogTest, ASinkThatThrowsHarmsNobody) {
  set_log_sink([](LogLevel, std::string_view) { throw std::runtime_error("host"); });
  log(LogLevel::error, "x");
  capture();
  log(LogLevel::error, "y");
  EXPECT_THAT(lines_, ElementsAre("y"));
}

TEST_F(LogTest, ReplacedWhileOthersLog) {
  capture();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) log(LogLevel::debug, "x");
    });
  }
  for (int i = 0; i < 50; ++i) capture();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 800u);
}

}  // namespace
}  // namespace kiln
