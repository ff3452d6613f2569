// Real compilations: every implementation's default program for every arch that it runs on, and
// samples of what a sweep tries.
#include "runtime/runtime_impl.h"
#include "runtime/tools.h"
#include "tests/kernel_sources/norm_fixture.h"

#include <algorithm>
#include <optional>

namespace kiln::testing {
namespace {

class NormCompileTest : public ::testing::TestWithParam<NormForm> {
 protected:
  // A call of the family's problems that `key` serves on `arch` when it is preferred.
  std::optional<internal::ParsedCall> call_of(const std::string& key, int arch) {
    for (const internal::CallLine& line : problems_) {
      if (line.call.op != GetParam().op) continue;
      const auto op = make_op(runtime_, line.call.op, line.call.params, {.prefer = {key}});
      const auto planned = tools::explain_call(*op, line.call.args, DeviceType::cuda(),
                                               *reference_facts(arch), false);
      if (planned.ok() && planned->at(0).selection.chosen == key) return line.call;
    }
    return std::nullopt;
  }

  Runtime runtime_{in_tree_options()};
  const std::vector<internal::CallLine> problems_ = norm_problems(runtime_);
};

TEST_P(NormCompileTest, EveryDefaultCompilesForEveryArch) {
  for (const KernelRow& row : runtime_.kernel_rows(GetParam().op)) {
    for (const int arch : kArchs) {
      const auto& archs = row.type.supported_archs;
      if (!archs.empty() && std::find(archs.begin(), archs.end(), arch) == archs.end()) continue;
      const auto call = call_of(row.key, arch);
      ASSERT_TRUE(call) << "no problem for " << row.key << " on " << arch;
      const auto op = make_op(runtime_, call->op, call->params, {.prefer = {row.key}});
      const auto warmed =
          tools::warm_call(*op, call->args, DeviceType::cuda(), *reference_facts(arch));
      ASSERT_THAT(warmed, is_ok()) << row.key << " on " << arch;
      EXPECT_EQ(warmed->at(0).key, row.key);
      EXPECT_EQ(warmed->at(0).programs.size(), 1u);
    }
  }
}

TEST_P(NormCompileTest, WhatASweepTriesCompiles) {
  const DeviceFacts facts = *reference_facts(90);
  for (const KernelRow& row : runtime_.kernel_rows(GetParam().op)) {
    const auto call = call_of(row.key, 90);
    ASSERT_TRUE(call) << row.key;
    const auto op = make_op(runtime_, call->op, call->params);
    const KernelCall kernel_call = op->plan(call->args)->at(0);
    const auto kernel =
        op->entry_plan(kernel_call.interface, row.key, kernel_call.call.ref())->build();
    const std::vector<Config> configs = kernel->autotune_configs(facts);
    EXPECT_EQ(configs.front(), kernel->default_config(facts)) << row.key;
    EXPECT_GE(configs.size(), 10u) << row.key;
    EXPECT_LE(configs.size(), 160u) << row.key;
    DeviceSupport& support = **runtime_.device_support(DeviceType::cuda());
    for (std::size_t i = 1; i < configs.size(); i += configs.size() / 4) {
      for (const Program& program : kernel->programs(facts, configs[i])) {
        EXPECT_LE(program.smem_bytes, facts.smem_budget);
        EXPECT_THAT(runtime_.impl().engine.build(support.compiler(), program, "sm_90"), is_ok())
            << row.key << " with " << to_string(configs[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, NormCompileTest, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.op); });

}  // namespace
}  // namespace kiln::testing
