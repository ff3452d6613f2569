#include "runtime/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status open_status(std::string_view library) { return CudaDriver::open(library).status(); }

TEST(CudaDriverTest, MissingLibrarySaysWhichWhereAndWhatToInstall) {
  const absl::Status status = open_status("libcuda_that_is_not_here.so.1");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(message_of(status),
              AllOf(HasSubstr("libcuda_that_is_not_here.so.1"), HasSubstr("could not be opened"),
                    HasSubstr("LD_LIBRARY_PATH"), HasSubstr("install the NVIDIA driver")));
}

TEST(CudaDriverTest, OldDriverSaysWhatItHasAndWhatIsNeeded) {
  const absl::Status status = open_status(OLD_CUDA_DRIVER);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(message_of(status),
              AllOf(HasSubstr("is too old"), HasSubstr("supports CUDA 11.4"),
                    HasSubstr("needs 12.0"), Not(HasSubstr("could not be opened"))));
}

TEST(CudaDriverTest, MissingFunctionIsNamed) {
  const absl::Status status = open_status(INCOMPLETE_CUDA_DRIVER);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(message_of(status), AllOf(HasSubstr("has no function cuLibraryLoadData"),
                                        HasSubstr("13.0"), Not(HasSubstr("too old"))));
}

TEST(CudaDriverTest, LibraryThatIsNoDriverIsNotTakenForOne) {
  const absl::Status status = open_status("libm.so.6");
  EXPECT_THAT(message_of(status), HasSubstr("has no function cuDriverGetVersion")) << status;
}

// The toolkit brings a library of the right name that can only be linked against.
TEST(CudaDriverTest, ToolkitsLinkLibraryIsNotTakenForADriver) {
  const std::string library = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "the toolkit has no " << library;
  const absl::Status status = open_status(library);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(message_of(status), HasSubstr("it is damaged or not NVIDIA's")) << status;
}

TEST(CudaDriverTest, NamesTheLibraryThatADriverInstalls) {
  EXPECT_EQ(kCudaLibrary, "libcuda.so.1");
}

}  // namespace
}  // namespace kiln
