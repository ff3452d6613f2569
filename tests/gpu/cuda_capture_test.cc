// Graph capture: launches can be recorded, and loading in one thread does not break what another
// records.

#include "tests/gpu/capture_fixture.h"

#include <thread>

namespace kiln {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

TEST_F(CudaCaptureTest, FirstLaunchOfAnImageCanBeRecorded) {
  int* data = make_int(0);
  EXPECT_FALSE(*support_->is_capturing(recorded_));
  begin();
  EXPECT_TRUE(*support_->is_capturing(recorded_));
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(3);
  EXPECT_FALSE(*support_->is_capturing(recorded_));
  EXPECT_EQ(read_int(data), 3);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaCaptureTest, LoadingInAnotherThreadDoesNotBreakTheCapture) {
  int* data = make_int(0);
  const std::string image = *compile();
  begin();
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  std::thread([&] {
    auto loaded = support_->load(0, "cubin", image, names_);
    EXPECT_THAT(loaded, is_ok());
    if (loaded.ok()) {
      EXPECT_THAT(support_->prepare(0, (*loaded)->functions()[0], 1024), is_ok());
    }
  }).join();  // unloads it, too
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(1);
  EXPECT_EQ(read_int(data), 2);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaCaptureTest, TimingARecordedStreamIsRefusedAndTheCaptureGoesOn) {
  int* data = make_int(0);
  begin();
  EXPECT_THAT(support_->time(recorded_, [] { return absl::OkStatus(); }),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("captured")));
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(1);
  EXPECT_EQ(read_int(data), 1);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

}  // namespace
}  // namespace kiln
