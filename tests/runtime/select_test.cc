#include "runtime/select.h"

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace kiln::internal {
namespace {

using ::kiln::testing::is_ok;
using ::kiln::testing::ToyCall;
using ::testing::HasSubstr;

template <int I>
Refusal refuse_by_mask(CallRef call) {
  const auto mask = static_cast<const ToyCall*>(call.data)->mask;
  if ((mask >> I & 1) != 0) return serves;
  return refuse("bit ", I, " is not set in ", mask);
}
template <int... I>
std::array<Refusal (*)(CallRef), sizeof...(I)> refusals(std::integer_sequence<int, I...>) {
  return {&refuse_by_mask<I>...};
}

// A set of up to 8 implementations with random availability, preferences and one general at most;
// no cycles, since a preference goes only from a higher rank to a lower one.
Candidates random_candidates(std::mt19937& random) {
  static const auto by_mask = refusals(std::make_integer_sequence<int, 8>{});
  auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  Candidates candidates{"ToyFwdOp", "ToyFwdInterface", {}, {}};
  const std::size_t count = 1 + random() % 8;
  const std::size_t general = chance(50) ? random() % count : count;
  for (std::size_t i = 0; i < count; ++i) {
    KernelRow row{"ToyFwdOp", std::string("k") + std::to_string(i), {}, "test"};
    row.type.devices = {chance(90) ? DeviceType::cuda() : DeviceType::cpu()};
    if (chance(30)) row.type.supported_archs = {90};
    row.type.general = i == general;
    row.type.refusal = by_mask[i];
    for (std::size_t j = 0; j < i && i != general; ++j) {
      if (chance(40)) row.type.preferred_over.push_back("k" + std::to_string(j));
    }
    candidates.rows.push_back(std::move(row));
  }
  return candidates;
}

// The rules of the reference, written again in the plainest way: the keys that are left.
std::vector<std::string> expected_winners(const Candidates& c, const ToyCall& call, int arch) {
  std::vector<const KernelRow*> apply;
  for (const KernelRow& row : c.rows) {
    const auto& archs = row.type.supported_archs;
    const bool available = row.type.devices[0] == DeviceType::cuda() &&
                           (archs.empty() || std::count(archs.begin(), archs.end(), arch) > 0);
    if (available && !row.type.refusal(call)) apply.push_back(&row);
  }
  std::vector<std::string> left;
  for (const KernelRow* row : apply) {
    bool out = false;
    for (const KernelRow* other : apply) {
      const auto& over = other->type.preferred_over;
      out |= row->type.general && !other->type.general;
      out |= !other->type.general && std::count(over.begin(), over.end(), row->key) > 0;
    }
    if (!out) left.push_back(row->key);
  }
  return left;
}

TEST(SelectTest, FollowsTheRulesForRandomSetsInEveryOrder) {
  std::mt19937 random(20260101);
  int chosen = 0, ambiguous = 0, none = 0;
  for (int round = 0; round < 3000; ++round) {
    Candidates candidates = random_candidates(random);
    const ToyCall call{.n = 1, .mask = static_cast<std::int64_t>(random() % 256)};
    const int arch = random() % 2 == 0 ? 90 : 80;
    const std::vector<std::string> winners = expected_winners(candidates, call, arch);
    ASSERT_THAT(check_candidates(candidates), is_ok());
    for (int order = 0; order < 4; ++order) {
      std::shuffle(candidates.rows.begin(), candidates.rows.end(), random);
      const Selection selection = select(candidates, DeviceType::cuda(), {arch, 132, 0, ""}, call);
      if (winners.size() == 1) {
        ASSERT_EQ(selection.chosen, winners.front());
        ++chosen;
      } else {
        ASSERT_FALSE(selection.chosen);
        ASSERT_THAT(message_of(selection.error),
                    HasSubstr(winners.empty() ? "no implementation serves this call"
                                              : "dispatch is ambiguous"));
        ++(winners.empty() ? none : ambiguous);
      }
      ASSERT_EQ(selection.verdicts.size(), candidates.rows.size());
    }
  }
  EXPECT_GT(chosen, 1000);
  EXPECT_GT(ambiguous, 100);
  EXPECT_GT(none, 100);
}

TEST(SelectTest, PreferenceIsDirectAndNotTransitive) {
  Candidates candidates{"ToyFwdOp", "ToyFwdInterface", {}, {}};
  for (const char* key : {"a", "b", "c"}) {
    KernelRow row{"ToyFwdOp", key, {}, "test"};
    row.type.devices = {DeviceType::cuda()};
    row.type.refusal = &refuse_by_mask<0>;
    candidates.rows.push_back(row);
  }
  candidates.rows[0].type.preferred_over = {"b"};
  candidates.rows[1].type.preferred_over = {"c"};
  candidates.rows[1].type.refusal = &refuse_by_mask<1>;
  const DeviceFacts facts{90, 132, 0, ""};
  // b serves: a beats b, b beats c, a alone is left.
  EXPECT_EQ(select(candidates, DeviceType::cuda(), facts, ToyCall{.mask = 3}).chosen, "a");
  // b does not: nothing relates a and c.
  EXPECT_THAT(message_of(select(candidates, DeviceType::cuda(), facts, ToyCall{.mask = 1}).error),
              HasSubstr("dispatch is ambiguous"));
}

TEST(SelectTest, AUsersPreferenceSettlesAClash) {
  std::mt19937 random(7);
  Candidates candidates{"ToyFwdOp", "ToyFwdInterface", {}, {"absent", "k1"}};
  for (const char* key : {"k0", "k1"}) {
    KernelRow row{"ToyFwdOp", key, {}, "test"};
    row.type.devices = {DeviceType::cuda()};
    row.type.refusal = &refuse_by_mask<0>;
    candidates.rows.push_back(row);
  }
  EXPECT_EQ(select(candidates, DeviceType::cuda(), {90, 1, 0, ""}, ToyCall{.mask = 1}).chosen,
            "k1");
}

TEST(SelectTest, ARefusalThatThrowsIsAReason) {
  Candidates candidates{"ToyFwdOp", "ToyFwdInterface", {}, {}};
  KernelRow row{"ToyFwdOp", "bad", {}, "test"};
  row.type.devices = {DeviceType::cuda()};
  row.type.refusal = [](CallRef) -> Refusal { throw std::runtime_error("boom"); };
  candidates.rows.push_back(row);
  const Selection selection = select(candidates, DeviceType::cuda(), {90, 1, 0, ""}, ToyCall{});
  EXPECT_THAT(message_of(selection.error), HasSubstr("refusal threw: boom"));
}

}  // namespace
}  // namespace kiln::internal
