#include "runtime/tune_record.h"

#include "base/file_system.h"
#include "cache/pack.h"
#include "cache/tuning_files.h"
#include "runtime/tune_json.h"
#include "tests/support/status_matchers.h"
#include "tests/tuning/tuning_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

namespace kiln::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_ok;
using ::testing::SizeIs;
using testing::status_is;
using testing::TempDir;

TuneRecord example() {
  TuneRecord record;
  record.key = {"LayerNormFwdOp", "layer_norm", 0, "00ff", "cuda", {90, 132, 232448, "h200"}};
  record.conditions = {"abcd", {"nvrtc", "13.0.1", "13.0"}, "13.0", "ef01"};
  TuneReport& report = record.report;
  report.op = "LayerNormFwdOp";
  report.implementation = "layer_norm";
  report.identity = "00ff";
  report.identity_text = "(4096, 1e-05)";
  report.problem = "x float16[8192, 4096]";
  report.method = "graph replay, events, cold";
  report.seed = 7;
  report.default_config = {{"threads", 256}, {"loop", 0}};
  report.winner = {{"threads", 512}, {"loop", 2}};
  report.default_seconds = 3.5e-5;
  report.winner_seconds = 3.25e-5;
  report.gain_seconds = 2.5e-6;
  report.noise_seconds = 1e-7;
  report.decision = "replaces the default";
  report.sweep_seconds = 1.5;
  report.candidates.resize(2);
  report.candidates[0].config = report.default_config;
  report.candidates[0].state = CandidateState::measured;
  report.candidates[0].seconds = 3.5e-5;
  report.candidates[0].samples = 15;
  report.candidates[0].registers = 40;
  report.candidates[1].config = report.winner;
  report.candidates[1].state = CandidateState::wrong;
  report.candidates[1].reason = "it is wrong";
  return record;
}

TEST(TuneRecordTest, ARecordComesBackAsItWas) {
  const TuneRecord record = example();
  const std::string json = record_to_json(record);
  const auto read = parse_record(json);
  ASSERT_THAT(read, is_ok());
  EXPECT_EQ(read->key, record.key);
  EXPECT_EQ(read->conditions, record.conditions);
  EXPECT_EQ(read->report.winner, record.report.winner);
  EXPECT_EQ(read->report.candidates[1].state, CandidateState::wrong);
  EXPECT_EQ(record_to_json(*read), json) << "the same record, the same bytes";
}

TEST(TuneRecordTest, WhatIsNoRecordIsRefused) {
  for (const char* text : {"", "{", "[]", "{}", "null", "{\"kiln_tuning\":\"one\"}",
                           "{\"kiln_tuning\":1}", "{\"kiln_tuning\":1,\"op\":3}"}) {
    EXPECT_THAT(parse_record(text), status_is(absl::StatusCode::kDataLoss)) << text;
  }
  EXPECT_THAT(parse_record("{\"kiln_tuning\":2}"),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("version 1, got 2")));
  // Cut at every length.
  const std::string json = record_to_json(example());
  for (std::size_t length = 0; length + 2 < json.size(); length += 7)
    EXPECT_FALSE(parse_record(std::string_view(json).substr(0, length)).ok()) << length;
}

TEST(TuneRecordTest, TheNameHoldsEverythingThatChoosesAKernelAndABoard) {
  const TuneKey key = example().key;
  EXPECT_THAT(record_name(key), SizeIs(32));
  EXPECT_EQ(record_name(key), record_name(example().key));
  std::vector<TuneKey> others(9, key);
  others[0].op = "RMSNormFwdOp";
  others[1].implementation = "layer_norm_warp";
  others[2].kernel = 1;
  others[3].identity = "00fe";
  others[4].device_type = "cpu";
  others[5].facts.arch = 80;
  others[6].facts.sm_count = 131;
  others[7].facts.smem_budget = 1;
  others[8].facts.calibration = "h100";
  for (std::size_t i = 0; i < others.size(); ++i)
    EXPECT_NE(record_name(others[i]), record_name(key)) << i;
}

TEST(TuneRecordTest, AChangeOfWhatItHoldsUnderIsNamed) {
  const TuneRecord record = example();
  EXPECT_EQ(stale_reason(record, record.key, record.conditions), "");
  const auto reason = [&](auto change) {
    TuneConditions now = record.conditions;
    change(now);
    return stale_reason(record, record.key, now);
  };
  EXPECT_THAT(reason([](auto& c) { c.source = "dcba"; }), HasSubstr("the source changed"));
  EXPECT_THAT(reason([](auto& c) { c.space = "10fe"; }), HasSubstr("configuration space"));
  EXPECT_THAT(reason([](auto& c) { c.toolkit.build = "13.0.2"; }),
              HasSubstr("nvrtc 13.0.1 13.0, here is nvrtc 13.0.2 13.0"));
  EXPECT_THAT(reason([](auto& c) { c.driver = "13.1"; }), HasSubstr("the driver changed"));
  // A machine without a compiler or a driver cannot tell, and serves.
  EXPECT_EQ(reason([](auto& c) { c.toolkit = {}; }), "");
  EXPECT_EQ(reason([](auto& c) { c.driver = ""; }), "");
  TuneKey other = record.key;
  other.facts.sm_count = 114;
  EXPECT_NE(stale_reason(record, other, record.conditions), "");
}

TEST(TuneRecordTest, MergingKeepsTheBetterMeasured) {
  TuneRecord few = example(), many = example(), cut = example();
  many.report.candidates[0].samples = 20;
  cut.report.candidates[0].samples = 99;
  cut.report.complete = false;
  EXPECT_EQ(&better_measured(few, many), &many);
  EXPECT_EQ(&better_measured(many, few), &many);
  EXPECT_EQ(&better_measured(cut, few), &few);
  EXPECT_EQ(&better_measured(few, example()), &few);
}

TEST(TuneRecordTest, OptionsComeBackAsTheyWere) {
  TuneOptions options;
  options.policy = SearchPolicy::halving;
  options.exhaustive_limit = 2;
  options.sample_size = 3;
  options.seed = 4;
  options.budget_seconds = 5.5;
  options.compile_seconds = 6.5;
  options.sample_seconds = 7.5;
  options.rounds = 8;
  options.deciding_rounds = 9;
  options.least_gain = 0.25;
  options.force = true;
  options.store = false;
  options.exclude = {{"layer_norm", "threads=64", "it hangs"}};
  const Json json = json_of(options);
  EXPECT_EQ(json_of(tune_options_of(json)), json);
  // None of them is what it would be if it were forgotten.
  const Json untouched = json_of(TuneOptions());
  for (const auto& [name, value] : json.items()) EXPECT_NE(value, untouched.at(name)) << name;
}

TEST(TuneRecordTest, TheSpaceIsASet) {
  const Config a{{"threads", 128}}, b{{"threads", 256}};
  EXPECT_EQ(hash_of_space({a, b}), hash_of_space({b, a}));
  EXPECT_NE(hash_of_space({a, b}), hash_of_space({a}));
}

TEST(TuningFilesTest, RecordsAreKeptListedAndRemoved) {
  TempDir dir;
  const cache::TuningFiles files({.dir = dir.path()});
  EXPECT_EQ(files.find("aa").value(), std::nullopt);
  EXPECT_THAT(files.put("bb", "two"), is_ok());
  EXPECT_THAT(files.put("aa", "one"), is_ok());
  EXPECT_THAT(files.put("aa", "three"), is_ok());
  EXPECT_EQ(files.find("aa").value(), "three");
  using Row = std::pair<std::string, std::string>;
  EXPECT_THAT(files.list().value(), ElementsAre(Row{"aa", "three"}, Row{"bb", "two"}));
  EXPECT_THAT(testing::files_below(dir / "tuning"), SizeIs(2)) << "no temporary file is left";
  EXPECT_TRUE(files.remove("aa").value());
  EXPECT_FALSE(files.remove("aa").value());
  EXPECT_THAT(files.put("../x", "one"), status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(files.find(""), status_is(absl::StatusCode::kInvalidArgument));
}

TEST(TuningFilesTest, ARecordOthersCouldHaveWrittenIsNotRead) {
  TempDir dir;
  const cache::TuningFiles files({.dir = dir.path()});
  EXPECT_THAT(files.put("aa", "one"), is_ok());
  ASSERT_EQ(::chmod(files.path_of("aa").c_str(), 0666), 0);
  EXPECT_EQ(files.find("aa").value(), std::nullopt);
  const cache::TuningFiles strict({.dir = dir.path(), .strict = true});
  EXPECT_THAT(strict.find("aa"), status_is(absl::StatusCode::kPermissionDenied));
}

TEST(TuningFilesTest, LayersAreAskedAfterTheFolderInTheirOrder) {
  TempDir dir, layer;
  EXPECT_THAT(cache::TuningFiles({.dir = layer.path()}).put("aa", "of the layer"), is_ok());
  const std::string pack = dir / "records.kpack";
  cache::PackContents contents;
  contents.tuning = {{"aa", "of the pack"}, {"bb", "of the pack"}};
  testing::write_file(pack, cache::make_pack(contents).value());
  ASSERT_EQ(::chmod(pack.c_str(), 0600), 0);
  const cache::TuningFiles files({.dir = dir / "cache", .layers = {layer.path(), pack}});
  EXPECT_EQ(files.find("aa").value(), "of the layer");
  EXPECT_EQ(files.find("bb").value(), "of the pack");
  EXPECT_THAT(files.put("aa", "of the folder"), is_ok());
  EXPECT_EQ(files.find("aa").value(), "of the folder");
}

}  // namespace
}  // namespace kiln::internal
