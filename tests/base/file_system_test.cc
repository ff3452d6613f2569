#include "base/file_system.h"

#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <errno.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystem& fs_ = real_file_system();
  testing::TempDir dir_;
};

TEST_F(FileSystemTest, WhatIsWrittenIsRead) {
  const std::string bytes(100000, 'x');
  absl::StatusOr<Fd> out = fs_.create(dir_ / "a");
  ASSERT_THAT(out, is_ok());
  EXPECT_THAT(write_all(fs_, *out, bytes), is_ok());
  EXPECT_THAT(fs_.sync(*out), is_ok());
  absl::StatusOr<Fd> in = fs_.open_read(dir_ / "a");
  ASSERT_THAT(in, is_ok());
  EXPECT_EQ(*read_all(fs_, *in, 100000), bytes);
  in = fs_.open_read(dir_ / "a");
  EXPECT_THAT(read_all(fs_, *in, 99999),
              status_is(absl::StatusCode::kResourceExhausted, HasSubstr("100000")));
  EXPECT_EQ(fs_.stat(dir_ / "a")->mode, 0600u);
}

TEST_F(FileSystemTest, HalfWritesAreWrittenOn) {
  testing::FaultyFileSystem half;
  half.set_rule([](const testing::FileCall& call) {
    return call.writes ? testing::FaultyFileSystem::kHalf : 0;
  });
  absl::StatusOr<Fd> out = half.create(dir_ / "a");
  ASSERT_THAT(out, is_ok());
  EXPECT_THAT(write_all(half, *out, "0123456789"), is_ok());
  EXPECT_GT(half.calls(), 3);
  EXPECT_EQ(testing::read_file(dir_ / "a"), "0123456789");
}

TEST_F(FileSystemTest, CreateIsExclusiveAndLinksAreNotFollowed) {
  testing::write_file(dir_ / "a", "victim");
  ASSERT_EQ(::symlink((dir_ / "a").c_str(), (dir_ / "l").c_str()), 0);
  EXPECT_THAT(fs_.create(dir_ / "a"), status_is(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs_.create(dir_ / "l"), status_is(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(errno_of(fs_.open_read(dir_ / "l").status()), ELOOP);
  EXPECT_EQ(fs_.stat(dir_ / "l")->type, FileType::symlink);
  EXPECT_EQ(testing::read_file(dir_ / "a"), "victim");
}

TEST_F(FileSystemTest, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo((dir_ / "f").c_str(), 0600), 0);
  absl::StatusOr<Fd> fd = fs_.open_read(dir_ / "f");
  ASSERT_THAT(fd, is_ok());
  EXPECT_EQ(fs_.stat(*fd)->type, FileType::other);
}

TEST_F(FileSystemTest, FoldersLinksAndLists) {
  const std::string deep = dir_ / "a b/\xc3\xbc/it's \"q\";";
  EXPECT_THAT(make_dirs(fs_, deep), is_ok());
  EXPECT_THAT(make_dirs(fs_, deep), is_ok());
  EXPECT_EQ(fs_.stat(deep)->mode, 0700u);
  testing::write_file(deep + "/2", "two");
  EXPECT_THAT(fs_.link(deep + "/2", deep + "/1"), is_ok());
  EXPECT_THAT(fs_.link(deep + "/2", deep + "/1"), status_is(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(*fs_.list_dir(deep), ElementsAre("1", "2"));
  EXPECT_EQ(fs_.stat(deep + "/1")->inode, fs_.stat(deep + "/2")->inode);
  EXPECT_THAT(fs_.sync_dir(deep), is_ok());
  EXPECT_THAT(fs_.unlink(deep + "/1"), is_ok());
  EXPECT_THAT(fs_.rename(deep + "/2", deep + "/3"), is_ok());
  EXPECT_THAT(*fs_.list_dir(deep), ElementsAre("3"));
  EXPECT_THAT(fs_.list_dir(dir_ / "none"), status_is(absl::StatusCode::kNotFound));
}

TEST_F(FileSystemTest, ErrnoBecomesCodeTextAndNumber) {
  const absl::Status status = errno_status(ENOSPC, "write x");
  EXPECT_THAT(status,
              status_is(absl::StatusCode::kResourceExhausted, HasSubstr("write x: No space left")));
  EXPECT_EQ(errno_of(status), ENOSPC);
  EXPECT_EQ(errno_of(annotate(status, "who")), ENOSPC);
  EXPECT_EQ(errno_of(absl::InternalError("x")), 0);
  EXPECT_THAT(fs_.create(dir_ / std::string(300, 'n')),
              status_is(absl::StatusCode::kInvalidArgument));
}

TEST_F(FileSystemTest, DescriptorsHaveOneOwner) {
  absl::StatusOr<Fd> a = fs_.create(dir_ / "a");
  ASSERT_THAT(a, is_ok());
  const int number = a->get();
  Fd b = *std::move(a);
  EXPECT_EQ(b.get(), number);
  EXPECT_FALSE(a->valid());
  b = Fd();
  struct ::stat st;
  EXPECT_EQ(::fstat(number, &st), -1) << "assignment closes what was held";
}

// Guards: two ranks that write into one folder take the same temporary name.
TEST_F(FileSystemTest, UniqueSuffixesAreUnique) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(unique_suffix()).second);
}

}  // namespace
}  // namespace kiln
