// Prefill and decode of gated linear attention: two implementations of one interface.
#include <kiln/ops/gla.h>

#include "tests/support/families.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class GlaDispatchTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> key(GlaCall call, OpOptions options = {}) {
    options.runtime = &runtime;
    call.where = stated(90, 132);
    KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GlaFwdOp> op, GlaFwdOp::create({}, options));
    return op->key_for<GlaFwdInterface>(call);
  }
  Runtime runtime{in_tree_options()};
};

TEST_F(GlaDispatchTest, OneTokenIsDecodeAndAnyOtherNumberPrefill) {
  EXPECT_EQ(*key({.seqlen = 0}), "gla_prefill");
  EXPECT_EQ(*key({.seqlen = 1}), "gla_decode");
  EXPECT_EQ(*key({.seqlen = 2}), "gla_prefill");
  EXPECT_EQ(*key({.seqlen = 4096}), "gla_prefill");
}

TEST_F(GlaDispatchTest, PrefillServesOneTokenWhereDecodeIsLeftOut) {
  EXPECT_EQ(*key({.seqlen = 1}, {.exclude = {"gla_decode"}}), "gla_prefill");
}

TEST_F(GlaDispatchTest, KeysBeyond256ElementsAreRefusedWithTheReason) {
  EXPECT_EQ(*key({.dim_k = 256}), "gla_decode");
  EXPECT_THAT(key({.dim_k = 257}), status_is(absl::StatusCode::kUnimplemented,
                                             HasSubstr("keys of 1 to 256 elements, got 257")));
}

}  // namespace
}  // namespace kiln::testing
