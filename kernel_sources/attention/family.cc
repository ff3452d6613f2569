#include <kiln/ops/gqa_decode.h>
#include <kiln/registry.h>

#include "gqa_dense_decode.h"
#include "gqa_dense_decode_bs1.h"
#include "gqa_dense_decode_long_context.h"
#include "gqa_dense_fp8.h"
#include "gqa_dense_fp8_decode.h"
#include "reference.h"

namespace kiln {

void register_attention(Registry& registry);
void register_attention(Registry& registry) {
  registry.add_op<GqaDecodeFwdOp>();
  registry.add_reference("GqaDecodeFwdOp", gqa_decode_reference);
  registry.add<GqaDecodeFwdOp, GqaDenseDecodeKernel>("gqa_dense_decode");
  registry.add<GqaDecodeFwdOp, GqaDenseDecodeBs1Kernel>("gqa_dense_decode_bs1");
  registry.add<GqaDecodeFwdOp, GqaDenseDecodeLongContextKernel>("gqa_dense_decode_long_context");
  registry.add<GqaDecodeFwdOp, GqaDenseFp8Kernel>("gqa_dense_fp8");
  registry.add<GqaDecodeFwdOp, GqaDenseFp8DecodeKernel>("gqa_dense_fp8_decode");
}

}  // namespace kiln
