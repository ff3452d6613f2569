// A file of lines that threads and processes append to together: whole lines, each once.
#include "base/distinct_lines.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using Added = DistinctLines::Added;

const DistinctLines::Kind kKind = {
    [](std::string_view line) { return std::string(line.substr(0, line.find('#'))); },
    [](std::string_view line) { return line.ends_with("."); }};

std::unique_ptr<DistinctLines> open_lines(const std::string& path, std::size_t max_lines = 1000) {
  auto lines = DistinctLines::open(path, max_lines, kKind);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return lines.ok() ? *std::move(lines) : nullptr;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = read_file(path);
  EXPECT_TRUE(text.empty() || text.back() == '\n') << "half a line: " << text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

Added add(DistinctLines& lines, std::string_view line) {
  const absl::StatusOr<Added> added = lines.add(line);
  EXPECT_TRUE(added.ok()) << added.status();
  return added.value_or(Added::file_is_full);
}

TEST(DistinctLinesTest, AppendsWhatIsNewAndReadsWhatIsThere) {
  TempDir dir;
  const std::string path = dir / "lines";
  EXPECT_EQ(add(*open_lines(path), "a."), Added::yes);
  auto lines = open_lines(path);
  EXPECT_EQ(add(*lines, "a."), Added::was_there);
  EXPECT_EQ(add(*lines, "b.#1"), Added::yes);
  EXPECT_EQ(add(*lines, "b.#2"), Added::was_there);  // the same by its identity
  EXPECT_THAT(lines_of(path), ElementsAre("a.", "b.#1"));
}

TEST(DistinctLinesTest, TwoOpenFilesSeeEachOthersLines) {
  TempDir dir;
  auto one = open_lines(dir / "lines"), two = open_lines(dir / "lines");
  EXPECT_EQ(add(*one, "a."), Added::yes);
  EXPECT_EQ(add(*two, "a."), Added::was_there);
  EXPECT_EQ(add(*two, "b."), Added::yes);
  EXPECT_EQ(add(*one, "b."), Added::was_there);
}

TEST(DistinctLinesTest, HalfALineIsCutAndAWholeOneIsKept) {
  TempDir dir;
  write_file(dir / "half", "a.\nb");
  EXPECT_EQ(add(*open_lines(dir / "half"), "c."), Added::yes);
  EXPECT_THAT(lines_of(dir / "half"), ElementsAre("a.", "c."));
  write_file(dir / "whole", "a.\nb.");
  auto lines = open_lines(dir / "whole");
  EXPECT_EQ(add(*lines, "c."), Added::yes);
  EXPECT_EQ(add(*lines, "b."), Added::was_there);
  EXPECT_THAT(lines_of(dir / "whole"), ElementsAre("a.", "b.", "c."));
}

TEST(DistinctLinesTest, HoldsNoMoreThanItsLimit) {
  TempDir dir;
  auto lines = open_lines(dir / "lines", 2);
  EXPECT_EQ(add(*lines, "a."), Added::yes);
  EXPECT_EQ(add(*lines, "b."), Added::yes);
  EXPECT_EQ(add(*lines, "c."), Added::file_is_full);
  EXPECT_EQ(add(*lines, "a."), Added::was_there);
  EXPECT_THAT(lines_of(dir / "lines"), ElementsAre("a.", "b."));
}

TEST(DistinctLinesTest, AFileThatIsMovedAwayOrEmptiedIsBegunAgain) {
  TempDir dir;
  const std::string path = dir / "lines";
  auto lines = open_lines(path);
  EXPECT_EQ(add(*lines, "a."), Added::yes);
  ASSERT_EQ(::rename(path.c_str(), (path + ".1").c_str()), 0);
  EXPECT_EQ(add(*lines, "b."), Added::yes);
  EXPECT_THAT(lines_of(path), ElementsAre("b."));
  EXPECT_THAT(lines_of(path + ".1"), ElementsAre("a."));
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(add(*lines, "c."), Added::yes);
  EXPECT_EQ(add(*lines, "b."), Added::yes);
  EXPECT_THAT(lines_of(path), ElementsAre("c.", "b."));
}

TEST(DistinctLinesTest, ProcessesAndThreadsAtOnceWriteEachLineOnce) {
  TempDir dir;
  const std::string path = dir / "lines";
  constexpr int kProcesses = 4, kThreads = 3, kLines = 60;
  const auto write_all = [&] {
    auto lines = open_lines(path);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kLines; ++i)
          add(*lines, std::to_string((i * 7 + t * 13) % kLines) + std::string(500, 'x') + ".");
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      write_all();
      ::_exit(HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::vector<std::string> lines = lines_of(path);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::unique(lines.begin(), lines.end()), lines.end());
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(kLines));
}

TEST(DistinctLinesTest, ALockThatIsNeverGivenBackIsNotWaitedForForever) {
  TempDir dir;
  auto lines = open_lines(dir / "lines");
  const int other = ::open((dir / "lines").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(add(*lines, "a."), Added::yes);
  ::close(other);
  EXPECT_THAT(lines_of(dir / "lines"), ElementsAre("a."));
}

TEST(DistinctLinesTest, AWriteThatIsCutShortLeavesTheFileAsItWas) {
  TempDir dir;
  const std::string path = dir / "lines";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto lines = open_lines(path);
    add(*lines, "a.");
    const rlimit small = {10, 10};  // bytes: the next line gets half way
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    ::_exit(lines->add("a line of more than ten bytes.").ok() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(lines_of(path), ElementsAre("a."));
}

TEST(DistinctLinesTest, WhatIsNoPlainFileIsRefused) {
  TempDir dir;
  EXPECT_FALSE(DistinctLines::open(dir.path(), 10, kKind).ok());
  EXPECT_FALSE(DistinctLines::open(dir / "no/folder", 10, kKind).ok());
  EXPECT_FALSE(DistinctLines::open("/dev/null", 10, kKind).ok());
}

}  // namespace
}  // namespace kiln::testing
