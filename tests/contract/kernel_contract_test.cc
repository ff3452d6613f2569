// Every problem of every family, on every kind of board: planned, chosen, compiled; and nothing is
// compiled twice.
#include "runtime/boards.h"
#include "runtime/tools.h"
#include "tests/support/families.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace kiln::testing {
namespace {

class KernelContractTest : public ::testing::TestWithParam<std::tuple<Family, std::string>> {};

TEST_P(KernelContractTest, EveryProblemCompilesOnceAndIsFoundAfterwards) {
  const auto& [family, board] = GetParam();
  const TempDir cache;
  const auto facts = board_facts(board);
  ASSERT_THAT(facts, is_ok());
  for (const bool again : {false, true}) {
    Runtime runtime(in_tree_options(cache.path()));
    const auto problems = problems_of(runtime, family);
    ASSERT_THAT(problems, is_ok());
    ASSERT_FALSE(problems->empty());
    for (const internal::CallLine& problem : *problems) {
      SCOPED_TRACE(family.name + "/problems.jsonl:" + std::to_string(problem.line));
      auto op = runtime.create_op(problem.call.op, problem.call.params, {.runtime = &runtime});
      ASSERT_THAT(op, is_ok());
      const auto planned = tools::explain_call(**op, problem.call.args, DeviceType::cuda(), *facts,
                                               /*look_up=*/false);
      ASSERT_THAT(planned, is_ok());
      ASSERT_FALSE(planned->empty());
      for (const tools::PlannedKernel& kernel : *planned) {
        ASSERT_TRUE(kernel.selection.chosen.has_value()) << kernel.selection.error;
        // On one board all that serve the call, on the others the chosen one: the rest differs by
        // the arch alone.
        for (const Verdict& verdict : kernel.selection.verdicts) {
          const bool serves = verdict.kind == VerdictKind::lower && board == "h200";
          if (verdict.kind != VerdictKind::chosen && !serves) continue;
          const auto alone = runtime.create_op(problem.call.op, problem.call.params,
                                               {.runtime = &runtime, .only = {verdict.key}});
          ASSERT_THAT(alone, is_ok());
          const auto warmed =
              tools::warm_call(**alone, problem.call.args, DeviceType::cuda(), *facts);
          EXPECT_THAT(warmed, is_ok()) << verdict.key;
        }
      }
    }
    if (again) {
      EXPECT_EQ(runtime.stats().compilations, 0);
    } else {
      EXPECT_GT(runtime.stats().compilations, 0);
    }
    EXPECT_EQ(runtime.stats().compile_failures, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KernelContractTest,
                         ::testing::Combine(::testing::ValuesIn(families_with_problems()),
                                            ::testing::Values("a100", "a10", "l40s", "h200", "b200",
                                                              "rtx5090")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param).name + "_" + std::get<1>(tested.param);
                         });

}  // namespace
}  // namespace kiln::testing
