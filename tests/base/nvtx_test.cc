// Spans are NVTX ranges, whether or not a trace is written. A program of its own: NVTX looks for
// its listener once.
#include "base/trace.h"
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln {
namespace {

TEST(NvtxTest, SpansAreRangesOfTheDomainKiln) {
  const testing::TempDir folder;
  const std::string out = folder.path() + "/ranges";
  ::setenv("NVTX_INJECTION64_PATH", KILN_NVTX_PROBE, 1);
  ::setenv("KILN_NVTX_OUT", out.c_str(), 1);
  {
    const TraceSpan outer(nullptr, "build", "LayerNormFwdOp");
    const TraceSpan inner(nullptr, "compile", "a.cu for sm_90a");
  }
  EXPECT_EQ(testing::read_file(out),
            "domain kiln\npush build: LayerNormFwdOp\npush compile: a.cu for sm_90a\npop\npop\n");
}

}  // namespace
}  // namespace kiln
