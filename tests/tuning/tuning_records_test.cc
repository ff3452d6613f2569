#include <kiln/log.h>
#include <kiln/status.h>

#include "cache/tuning_files.h"
#include "runtime/tools.h"
#include "runtime/tune_record.h"
#include "tests/support/status_matchers.h"
#include "tests/tuning/tuning_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

// What a process makes of records that another, here an earlier runtime, has left.
namespace kiln::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TuneOptions quick() {
  TuneOptions options;
  options.rounds = 7;
  options.sample_seconds = 2e-4;
  return options;
}

class TuningRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override { tune(cache_.path()); }

  static void tune(const std::string& folder) {
    const auto runtime = tuning_runtime(folder);
    auto op = tuning_op(*runtime);
    CallerTensors tensors;
    ASSERT_THAT(tensors.call(*op), is_ok());
    op->request_tune(quick());
    ASSERT_EQ(op->kernel_config(), kBest) << op->tune_reports().at(0).decision;
  }

  // The configuration that a new process would use, and what it says.
  Config config_of_a_new_process(RuntimeOptions options = {}) {
    said_.clear();
    set_log_sink([this](LogLevel, std::string_view line) { said_.emplace_back(line); });
    const auto runtime = tuning_runtime(cache_.path(), std::move(options));
    auto op = tuning_op(*runtime);
    CallerTensors tensors;
    EXPECT_THAT(tensors.call(*op), is_ok());
    EXPECT_EQ(tensors.y[0], 6.0F);
    EXPECT_EQ(runtime->stats().sweeps, 0);
    stats_ = runtime->stats();
    set_log_sink(nullptr);
    return op->kernel_config();
  }

  std::string record_file() {
    const std::vector<std::string> files = files_below(cache_ / "tuning");
    EXPECT_THAT(files, SizeIs(1));
    return files.at(0);
  }
  void edit(const std::string& from, const std::string& to) {
    std::string text = read_file(record_file());
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << text;
    text.replace(at, from.size(), to);
    write_file(record_file(), text);
  }

  TempDir cache_;
  std::vector<std::string> said_;
  RuntimeStats stats_;
};

TEST_F(TuningRecordsTest, AWinnerIsUsedWithoutTuning) {
  EXPECT_EQ(config_of_a_new_process(), kBest);
  EXPECT_EQ(stats_.tuned_loads, 1);
  EXPECT_EQ(stats_.compilations, 0) << "the winner's artifact is in the cache";
}

TEST_F(TuningRecordsTest, AskedToTuneTheRecordIsEnough) {
  const auto runtime = tuning_runtime(cache_.path());
  auto op = tuning_op(*runtime);
  CallerTensors tensors;
  EXPECT_THAT(tensors.call(*op), is_ok());
  op->request_tune(quick());
  ASSERT_THAT(op->tune_reports(), SizeIs(1));
  EXPECT_TRUE(op->tune_reports()[0].from_record);
  EXPECT_EQ(op->tune_reports()[0].winner, kBest);
  EXPECT_EQ(runtime->stats().sweeps, 0);

  TuneOptions again = quick();
  again.force = true;
  op->request_tune(again);
  EXPECT_EQ(runtime->stats().sweeps, 1);
  EXPECT_FALSE(op->tune_reports().at(1).from_record);
}

TEST_F(TuningRecordsTest, SwitchedOffTheyAreLeftAlone) {
  RuntimeOptions options;
  options.use_tuned = false;
  EXPECT_EQ(config_of_a_new_process(options), kDefault);
  EXPECT_EQ(stats_.tuned_loads, 0);
}

TEST_F(TuningRecordsTest, AChangedSourceMeansNoUseAndIsSaid) {
  edit("\"source\": \"", "\"source\": \"0");
  EXPECT_EQ(config_of_a_new_process(), kDefault);
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("is not used"), HasSubstr("the source changed"))));
}

TEST_F(TuningRecordsTest, AnotherToolkitMeansNoUseAndIsSaid) {
  edit("\"build\": \"", "\"build\": \"older ");
  EXPECT_EQ(config_of_a_new_process(), kDefault);
  EXPECT_THAT(said_, Contains(HasSubstr("the toolkit changed")));
}

TEST_F(TuningRecordsTest, AnotherSpaceMeansNoUseAndIsSaid) {
  edit("\"space\": \"", "\"space\": \"0");
  EXPECT_EQ(config_of_a_new_process(), kDefault);
  EXPECT_THAT(said_, Contains(HasSubstr("the configuration space changed")));
}

TEST_F(TuningRecordsTest, AWinnerThatNoLongerExistsIsSaid) {
  edit("\"winner\": {\n  \"work\": 1", "\"winner\": {\n  \"work\": 3");
  EXPECT_EQ(config_of_a_new_process(), kDefault);
  EXPECT_THAT(said_, Contains(HasSubstr("work=3 kind=0 twin=0 no longer exists")));
}

TEST_F(TuningRecordsTest, ADamagedRecordIsNoRecord) {
  write_file(record_file(), read_file(record_file()).substr(0, 100));
  EXPECT_EQ(config_of_a_new_process(), kDefault);
  EXPECT_THAT(said_, Contains(HasSubstr("is not used")));
  // And tuning again mends it.
  tune(cache_.path());
  EXPECT_EQ(config_of_a_new_process(), kBest);
}

TEST_F(TuningRecordsTest, WhereNothingMayCompileTheTunedArtifactServes) {
  RuntimeOptions options;
  options.policy = CompilePolicy::forbid;
  EXPECT_EQ(config_of_a_new_process(options), kBest);

  // Its artifact gone, the default's does; it was compiled for the first call.
  for (const std::string& file : files_below(cache_ / "v1")) {
    if (read_file(file).find("WORK=1") != std::string::npos) std::remove(file.c_str());
  }
  EXPECT_EQ(config_of_a_new_process(options), kDefault);
  EXPECT_THAT(said_,
              Contains(HasSubstr("its tuned configuration work=1 kind=0 twin=0 is not used")));
}

TEST_F(TuningRecordsTest, WarmingBuildsTheWinner) {
  TempDir fresh;
  const std::string name = record_file().substr((cache_ / "tuning").size());
  cache::TuningFiles files({.dir = fresh.path()});
  ASSERT_THAT(files.put(name.substr(1, 32), read_file(record_file())), is_ok());
  const auto runtime = tuning_runtime(fresh.path());
  auto op = tuning_op(*runtime);
  const CallerTensors tensors;
  CallArgs args;
  args.inputs = {contiguous_arg({kHostStream.device, DType::float32, {tensors.n}}), std::nullopt,
                 std::nullopt};
  ASSERT_THAT(tools::complete_outputs(*op, args), is_ok());
  const DeviceFacts facts = (*runtime->device_support(DeviceType::cpu()))->facts(0).value();
  EXPECT_THAT(tools::warm_call(*op, args, DeviceType::cpu(), facts), is_ok());
  const auto planned = tools::explain_call(*op, args, DeviceType::cpu(), facts, /*look_up=*/true);
  ASSERT_THAT(planned, is_ok());
  EXPECT_EQ(planned->at(0).config, kBest);
  EXPECT_TRUE(planned->at(0).programs.at(0).tier.has_value());
  EXPECT_EQ(runtime->stats().compilations, 1);
}

TEST_F(TuningRecordsTest, WithoutACacheFolderTheWinnerIsThisProcesss) {
  const auto runtime = tuning_runtime("");
  auto op = tuning_op(*runtime);
  CallerTensors tensors;
  EXPECT_THAT(tensors.call(*op), is_ok());
  op->request_tune(quick());
  EXPECT_EQ(op->kernel_config(), kBest);
}

}  // namespace
}  // namespace kiln::testing
