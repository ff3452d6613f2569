// Which matrix product serves which call, and what is refused during selection.
#include <kiln/ops/gemm.h>

#include "tests/support/families.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

GemmCall nt(std::int64_t k) {
  return {.m = 64, .n = 64, .k = k, .trans_b = true, .where = stated(90, 132)};
}

class GemmDispatchTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> key(const GemmCall& call, OpOptions options = {}) {
    options.runtime = &runtime;
    KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GemmFwdOp> op, GemmFwdOp::create(options));
    return op->key_for<GemmFwdInterface>(call);
  }
  Runtime runtime{in_tree_options()};
};

TEST_F(GemmDispatchTest, GemmKTooNarrowToVectorizeIsRefusedDuringSelection) {
  for (std::int64_t k : {0, 1, 7}) {
    EXPECT_THAT(
        key(nt(k), {.exclude = {"gemm"}}),
        status_is(absl::StatusCode::kUnimplemented,
                  HasSubstr("k must span at least one vector of 8 elements of float16, got " +
                            std::to_string(k))));
  }
}

TEST_F(GemmDispatchTest, VectorsBeginAt8ElementsOfK) {
  EXPECT_EQ(*key(nt(1)), "gemm");
  EXPECT_EQ(*key(nt(7)), "gemm");
  EXPECT_EQ(*key(nt(8)), "gemm_vectorized");
  EXPECT_EQ(*key(nt(9)), "gemm_vectorized");
}

TEST_F(GemmDispatchTest, OtherLayoutsAndAddressesAreGeneral) {
  GemmCall call = nt(64);
  call.trans_b = false;
  EXPECT_EQ(*key(call), "gemm");
  call = nt(64);
  call.trans_a = true;
  EXPECT_EQ(*key(call), "gemm");
  call = nt(64);
  call.align = 8;
  EXPECT_EQ(*key(call), "gemm");
}

TEST_F(GemmDispatchTest, EveryArchIsServedAlike) {
  for (int arch : {80, 86, 89, 90, 100, 120}) {
    GemmCall call = nt(64);
    call.where = stated(arch, 100);
    EXPECT_EQ(*key(call), "gemm_vectorized") << arch;
  }
}

}  // namespace
}  // namespace kiln::testing
