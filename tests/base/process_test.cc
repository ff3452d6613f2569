#include "base/process.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln {
namespace {

TEST(ProcessTest, ThisOneIsThereAndAYoungerOneOfItsNumberIsNot) {
  ProcessId me = current_process();
  EXPECT_EQ(me.pid, ::getpid());
  EXPECT_GT(me.start, 0);
  EXPECT_FALSE(is_gone(me));
  me.start -= 1;
  EXPECT_TRUE(is_gone(me)) << "the number was given to another process";
  me.host = "elsewhere";
  EXPECT_FALSE(is_gone(me)) << "nothing is known of other hosts";
}

TEST(ProcessTest, AKilledChildIsGoneBeforeAnybodyWaitedForIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ProcessId other = current_process();
  other.pid = child;
  other.start = -1;
  EXPECT_FALSE(is_gone(other));
  ::kill(child, SIGSTOP);
  EXPECT_FALSE(is_gone(other)) << "stopped is not gone";
  ::kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_gone(other)) << "a zombie";
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_gone(other));
}

}  // namespace
}  // namespace kiln
