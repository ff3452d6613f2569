#include <kiln/ops/gemm.h>
#include <kiln/registry.h>

#include "gemm.h"
#include "gemm_vectorized.h"
#include "reference.h"

namespace kiln {

void register_gemm(Registry& registry);
void register_gemm(Registry& registry) {
  registry.add_op<GemmFwdOp>();
  registry.add_reference("GemmFwdOp", gemm_reference);
  registry.add<GemmFwdOp, GemmKernel>("gemm");
  registry.add<GemmFwdOp, GemmVectorizedKernel>("gemm_vectorized");
}

}  // namespace kiln
