// Which decode kernel serves which call: the reference's table of choices, and every range at its
// borders.
#include <kiln/ops/gqa_decode.h>

#include "tests/support/families.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class AttentionDispatchTest : public ::testing::Test {
 protected:
  AttentionDispatchTest() {
    auto made = GqaDecodeFwdOp::create({}, {.runtime = &runtime});
    EXPECT_THAT(made, is_ok());
    op = *std::move(made);
  }
  std::string key(const AttentionCall& call) {
    auto key = op->key_for<GqaDecodeFwdInterface>(call);
    EXPECT_THAT(key, is_ok());
    return key.ok() ? *key : "";
  }
  // Batch 1 of the table: 32 heads on 4, 128 elements, float16.
  static AttentionCall table(int arch, std::int64_t keys) {
    return {.heads = 32, .heads_kv = 4, .dim = 128, .seqlen_kv = keys, .where = stated(arch, 132)};
  }
  static AttentionCall fp8(std::int64_t keys) {
    AttentionCall call = table(90, keys);
    call.dtype = DType::float8_e4m3;
    return call;
  }
  Runtime runtime{in_tree_options()};
  std::unique_ptr<GqaDecodeFwdOp> op;
};

TEST_F(AttentionDispatchTest, Table2Row1Sm90With4096KeysIsLongContext) {
  EXPECT_EQ(key(table(90, 4096)), "gqa_dense_decode_long_context");
}
TEST_F(AttentionDispatchTest, Table2Row2Sm90With512KeysIsBs1) {
  EXPECT_EQ(key(table(90, 512)), "gqa_dense_decode_bs1");
}
TEST_F(AttentionDispatchTest, Table2Row3Sm80With4096KeysIsLongContext) {
  EXPECT_EQ(key(table(80, 4096)), "gqa_dense_decode_long_context");
}
TEST_F(AttentionDispatchTest, Table2Row4Sm80With512KeysIsDecode) {
  EXPECT_EQ(key(table(80, 512)), "gqa_dense_decode");
}

TEST_F(AttentionDispatchTest, LongContextBeginsAt1024Keys) {
  EXPECT_EQ(key(table(90, 1023)), "gqa_dense_decode_bs1");
  EXPECT_EQ(key(table(90, 1024)), "gqa_dense_decode_long_context");
  EXPECT_EQ(key(table(80, 1023)), "gqa_dense_decode");
  EXPECT_EQ(key(table(80, 1024)), "gqa_dense_decode_long_context");
}

TEST_F(AttentionDispatchTest, EachFactOfLongContextKeepsOtherCallsOut) {
  const auto with = [&](auto change) {
    AttentionCall call = table(90, 4096);
    change(call);
    return key(call);
  };
  EXPECT_EQ(with([](AttentionCall& c) { c.batch = 2; }), "gqa_dense_decode");
  EXPECT_EQ(with([](AttentionCall& c) { c.heads = 64; }), "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.heads_kv = 8; }), "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.dim = 64; }), "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.dtype = c.dtype_q = DType::bfloat16; }),
            "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.softcap = 50; }), "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.fuse_rope = true; }), "gqa_dense_decode_bs1");
  EXPECT_EQ(with([](AttentionCall& c) { c.align = 8; }), "gqa_dense_decode_bs1");
}

TEST_F(AttentionDispatchTest, Fp8DecodeIsPreferredFrom2048KeysOn) {
  EXPECT_EQ(key(fp8(2047)), "gqa_dense_fp8");
  EXPECT_EQ(key(fp8(2048)), "gqa_dense_fp8_decode");
}

TEST_F(AttentionDispatchTest, GenericFp8ServesTheRangeOfFp8DecodeToo) {
  auto only =
      GqaDecodeFwdOp::create({}, {.runtime = &runtime, .exclude = {"gqa_dense_fp8_decode"}});
  ASSERT_THAT(only, is_ok());
  EXPECT_EQ(*(*only)->key_for<GqaDecodeFwdInterface>(fp8(4096)), "gqa_dense_fp8");
}

TEST_F(AttentionDispatchTest, Fp8DecodeKeepsToItsRange) {
  const auto with = [&](auto change) {
    AttentionCall call = fp8(4096);
    change(call);
    return key(call);
  };
  EXPECT_EQ(with([](AttentionCall& c) { c.batch = 2; }), "gqa_dense_fp8");
  EXPECT_EQ(with([](AttentionCall& c) { c.heads = 64; }), "gqa_dense_fp8_decode");
  EXPECT_EQ(with([](AttentionCall& c) { c.heads = 68; }), "gqa_dense_fp8");
  EXPECT_EQ(with([](AttentionCall& c) { c.dim = 160; }), "gqa_dense_fp8");
  EXPECT_EQ(with([](AttentionCall& c) { c.dim = 48; }), "gqa_dense_fp8");
  EXPECT_EQ(with([](AttentionCall& c) { c.fuse_rope = true; }), "gqa_dense_fp8");
}

TEST_F(AttentionDispatchTest, HeadsBeyond1024ElementsAreRefusedWithTheReason) {
  AttentionCall call = table(90, 100);
  call.dim = 1024;
  EXPECT_EQ(key(call), "gqa_dense_decode_bs1");
  call.dim = 1025;
  EXPECT_THAT(op->key_for<GqaDecodeFwdInterface>(call),
              status_is(absl::StatusCode::kUnimplemented,
                        HasSubstr("heads of 1 to 1024 elements, got 1025")));
}

}  // namespace
}  // namespace kiln::testing
