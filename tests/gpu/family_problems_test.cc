// Every problem that a family states, on the device against the reference in double.
#include <kiln/kiln.h>

#include "cli/run_call.h"
#include "tests/support/families.h"
#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::testing {
namespace {

struct OpResult {
  int calls = 0;
  double worst_steps = 0;
  double tolerance = 0;
  std::set<std::string> keys;
};

class FamilyProblemsTest : public ::testing::TestWithParam<Family> {};

TEST_P(FamilyProblemsTest, EveryProblemIsRightOnTheDevice) {
  KILN_NEEDS_GPU();
  const std::string& name = GetParam().name;
  TempDir folder;
  Runtime runtime(in_tree_options(folder.path() + "/cache"));
  std::map<std::string, OpResult> results;
  const auto lines = problems_of(runtime, GetParam());
  ASSERT_THAT(lines, is_ok());
  for (const internal::CallLine& line : *lines) {
    // Calls for benches alone: up to 2^28 elements, minutes and gigabytes for a reference in
    // double.
    if (line.call.tags == std::vector<std::string>{"perf"}) continue;
    const auto report =
        cli::run_call(runtime, line.call, Device{DeviceType::cuda(), 0}, cli::RunOptions());
    ASSERT_THAT(report, is_ok()) << name << ":" << line.line;
    OpResult& result = results[line.call.op];
    ++result.calls;
    result.worst_steps = std::max(result.worst_steps, report->worst.max_steps);
    result.tolerance = report->tolerance;
    for (const auto& kernel : report->kernels) result.keys.insert(kernel.chosen);
    EXPECT_LE(report->worst.max_steps, report->tolerance)
        << name << ":" << line.line << ": " << report->worst_tensor << "[" << report->worst.where
        << "]: got " << report->worst.got << ", want " << report->worst.want << ", served by "
        << report->kernels.front().chosen;
    EXPECT_EQ(report->failure, "") << name << ":" << line.line;
  }
  for (const auto& [op, result] : results) {
    std::string keys;
    for (const std::string& key : result.keys) keys += " " + key;
    std::printf("%-26s %3d calls, worst error %.2f of %.0f steps, served by%s\n", op.c_str(),
                result.calls, result.worst_steps, result.tolerance, keys.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyProblemsTest,
                         ::testing::ValuesIn(families_with_problems()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kiln::testing
