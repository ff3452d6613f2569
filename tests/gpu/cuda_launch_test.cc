#include "runtime/boards.h"
#include "tests/gpu/cuda_fixture.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

class CudaLaunchTest : public CudaTest {};

TEST_F(CudaLaunchTest, FactsAreThoseOfADevice) {
  EXPECT_GE(facts_.arch, 80);
  EXPECT_GT(facts_.sm_count, 0);
  EXPECT_FALSE(facts_.calibration.empty());
  if (const auto budget = smem_budget_of(facts_.arch); budget > 0) {
    EXPECT_EQ(facts_.smem_budget, budget);
  }
  RecordProperty("facts", to_string(facts_));
  // Whole boards of the table say the same as the table.
  if (const auto board = board_facts(facts_.calibration); board.ok()) {
    EXPECT_EQ(*board, facts_);
  }
}

TEST_F(CudaLaunchTest, DeviceThatIsNotThereIsNotFound) {
  const int count = *support_->device_count();
  EXPECT_THAT(support_->facts(count), status_is(absl::StatusCode::kNotFound, HasSubstr("cuda:")));
  EXPECT_THAT(support_->facts(-1), status_is(absl::StatusCode::kNotFound));
  Stream stream = stream_;
  stream.device.index = 254;
  EXPECT_THAT(launch_add_one(stream, nullptr), status_is(absl::StatusCode::kNotFound));
}

TEST_F(CudaLaunchTest, LaunchDoesItsWork) {
  int* data = make_int(41);
  EXPECT_THAT(launch_add_one(stream_, data), is_ok());
  EXPECT_EQ(read_int(data), 42);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaLaunchTest, PtxIsLoadedToo) {
  const std::string ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry store_seven(.param .u64 out) {
  .reg .b64 %address;
  .reg .b32 %value;
  ld.param.u64 %address, [out];
  cvta.to.global.u64 %address, %address;
  mov.u32 %value, 7;
  st.global.u32 [%address], %value;
  ret;
}
)";
  const std::vector<std::string> names{"store_seven"};
  auto image = support_->load(0, "ptx", ptx, names);
  ASSERT_THAT(image, is_ok());
  int* data = make_int(0);
  void* args[] = {&data};
  EXPECT_THAT(support_->launch((*image)->functions()[0], stream_, {}, args), is_ok());
  EXPECT_EQ(read_int(data), 7);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaLaunchTest, PtxErrorCarriesTheAssemblersLog) {
  const std::vector<std::string> names{"broken"};
  EXPECT_THAT(
      support_->load(
          0, "ptx", ".version 7.0\n.target sm_80\n.visible .entry broken() { nonsense; }\n", names),
      status_is(absl::StatusCode::kInvalidArgument, HasSubstr("nonsense")));
}

TEST_F(CudaLaunchTest, MissingKernelIsNamed) {
  const std::string image = *compile();
  const std::vector<std::string> names{"add_one", "not_there"};
  EXPECT_THAT(support_->load(0, "cubin", image, names),
              status_is(absl::StatusCode::kNotFound, HasSubstr("\"not_there\"")));
}

TEST_F(CudaLaunchTest, ImagesThatAreNoneAreRefused) {
  EXPECT_THAT(support_->load(0, "host_object", "bytes", {}),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("host_object")));
  EXPECT_THAT(support_->load(0, "cubin", "", {}), status_is(absl::StatusCode::kInvalidArgument));
}

TEST_F(CudaLaunchTest, CubinThatWasCutShortNeverReachesTheDriver) {
  const std::string image = *compile();
  const std::vector<std::string> names{"add_one"};
  for (std::size_t size = 1; size < image.size(); size += 97) {
    // A buffer of just that size, so that a sanitizer sees any read beyond it.
    const std::string cut(image.data(), size);
    EXPECT_THAT(support_->load(0, "cubin", cut, names),
                status_is(absl::StatusCode::kInvalidArgument, HasSubstr("whole ELF file")));
  }
}

TEST_F(CudaLaunchTest, PrepareAllowsAllTheSharedMemoryThereIs) {
  const int budget = static_cast<int>(facts_.smem_budget);
  ASSERT_THAT(support_->prepare(0, function(last_shared_byte), static_cast<std::uint32_t>(budget)),
              is_ok());
  // A smaller wish does not take away what a larger one got.
  ASSERT_THAT(support_->prepare(0, function(last_shared_byte), 1024), is_ok());
  int* out = make_int(0);
  int bytes = budget;
  void* args[] = {&out, &bytes};
  const LaunchShape shape{.smem_bytes = static_cast<std::uint32_t>(budget)};
  EXPECT_THAT(support_->launch(function(last_shared_byte), stream_, shape, args), is_ok());
  EXPECT_EQ(read_int(out), 42);
  EXPECT_THAT(support_->free(stream_, out), is_ok());
}

TEST_F(CudaLaunchTest, PrepareBeyondTheLimitNamesBothNumbers) {
  const auto wanted = static_cast<std::uint32_t>(facts_.smem_budget + 1);
  EXPECT_THAT(support_->prepare(0, function(add_one), wanted),
              status_is(absl::StatusCode::kResourceExhausted,
                        AllOf(HasSubstr(std::to_string(wanted)),
                              HasSubstr(std::to_string(facts_.smem_budget)))));
}

TEST_F(CudaLaunchTest, LaunchErrorNamesTheShapeAndHarmsNothing) {
  int* data = make_int(1);
  int count = 1;
  void* args[] = {&data, &count};
  EXPECT_THAT(
      support_->launch(function(add_one), stream_, LaunchShape{.block = {4096, 1, 1}}, args),
      status_is(absl::StatusCode::kInvalidArgument, HasSubstr("block [4096, 1, 1]")));
  EXPECT_THAT(launch_add_one(stream_, data), is_ok());
  EXPECT_EQ(read_int(data), 2);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaLaunchTest, ClustersAlsoLargerThanThePortableSize) {
  if (facts_.arch < 90)
    GTEST_SKIP() << "clusters exist from sm_90 on, this is " << to_string(facts_);
  ASSERT_THAT(support_->prepare(0, function(cluster_size), 0), is_ok());
  int* out = make_int(0);
  void* args[] = {&out};
  for (const std::uint32_t size : {2u, 8u, 16u}) {
    if (size == 16 && facts_.arch != 90 && facts_.arch != 100) continue;
    const LaunchShape shape{.grid = {size, 1, 1}, .block = {32, 1, 1}, .cluster = {size, 1, 1}};
    ASSERT_THAT(support_->launch(function(cluster_size), stream_, shape, args), is_ok());
    EXPECT_EQ(read_int(out), static_cast<int>(size));
  }
  EXPECT_THAT(support_->free(stream_, out), is_ok());
}

TEST_F(CudaLaunchTest, ProgrammaticOverlapKeepsTheOrderOfResults) {
  if (facts_.arch < 90)
    GTEST_SKIP() << "programmatic launches exist from sm_90 on, this is " << to_string(facts_);
  const Stream stream = *support_->create_stream(0);
  int* data = make_int(0);
  int count = 1;
  void* args[] = {&data, &count};
  const LaunchShape shape{.block = {32, 1, 1}, .programmatic_overlap = true};
  // The kernel gives no early trigger, so each launch still begins when the one before has ended.
  for (int i = 0; i < 100; ++i)
    ASSERT_THAT(support_->launch(function(add_one), stream, shape, args), is_ok());
  EXPECT_THAT(support_->synchronize(stream), is_ok());
  EXPECT_EQ(read_int(data), 100);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
  EXPECT_THAT(support_->destroy_stream(stream), is_ok());
}

TEST_F(CudaLaunchTest, TimeIsThatOfTheDevice) {
  long long cycles = 20'000'000;
  void* args[] = {&cycles};
  const auto seconds =
      support_->time(stream_, [&] { return support_->launch(function(spin), stream_, {}, args); });
  ASSERT_THAT(seconds, is_ok());
  EXPECT_GT(*seconds, 0.002);  // at most 10 GHz
  EXPECT_LT(*seconds, 2.0);
  EXPECT_THAT(support_->time(stream_, [] { return absl::InvalidArgumentError("from the body"); }),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("from the body")));
}

}  // namespace
}  // namespace kiln
