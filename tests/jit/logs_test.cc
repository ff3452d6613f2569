#include "jit/elf_symbols.h"
#include "jit/metadata.h"
#include "jit/ptxas_log.h"
#include "tests/jit/jit_test_util.h"

namespace kiln::jit {
namespace {

constexpr const char* kLog =
    "x.cu(4): warning #177-D: variable \"u\" was declared but never referenced\n"
    "\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
    "ptxas info    : Function properties for k2\n"
    "ptxas         .     3168 bytes stack frame, 3108 bytes spill stores, 3440 bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 0 barriers, 3168 bytes cumulative stack size\n"
    "ptxas info    : Compile time = 263.891 ms\n"
    "ptxas info    : Function properties for _Z2f23Bigi\n"
    "ptxas         .     8 bytes stack frame, 136 bytes spill stores, 280 bytes spill loads\n"
    "ptxas info    : Compiling entry function 'k1' for 'sm_90a'\n"
    "ptxas info    : Function properties for k1\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 14 registers, used 1 barriers, 512 bytes smem, 364 bytes cmem[0]\n"
    "ptxas warning : Value of threads per SM is out of range\n";

TEST(PtxasLogTest, FiguresGoToTheirKernelAndWarningsStay) {
  const PtxasLog log = parse_ptxas_log(kLog);
  const KernelInfo k2{.name = "k2",
                      .registers = 32,
                      .static_smem_bytes = 0,
                      .spill_bytes = 6548,
                      .stack_bytes = 3168};
  const KernelInfo k1{
      .name = "k1", .registers = 14, .static_smem_bytes = 512, .spill_bytes = 0, .stack_bytes = 0};
  EXPECT_EQ(log.kernels, (std::vector<KernelInfo>{k2, k1}));
  EXPECT_TRUE(log.rest.starts_with("x.cu(4): warning #177-D"));
  EXPECT_TRUE(log.rest.ends_with("ptxas warning : Value of threads per SM is out of range"));
  EXPECT_EQ(log.rest.find("ptxas info"), std::string::npos);
}

TEST(PtxasLogTest, EveryBeginningOfALogIsRead) {
  const std::string log = kLog;
  for (std::size_t size = 0; size <= log.size(); ++size) {
    EXPECT_LE(parse_ptxas_log(std::string_view(log).substr(0, size)).kernels.size(), 2u);
  }
}

TEST(MetadataTest, ComesBackAsItWas) {
  const std::vector<KernelInfo> kernels = {
      {.name = "b", .registers = 1, .static_smem_bytes = 2, .spill_bytes = 3, .stack_bytes = 4},
      {.name = "a"}};
  const std::string text = make_metadata(kernels);
  EXPECT_EQ(text,
            "{\"kernels\":[{\"name\":\"b\",\"registers\":1,\"spill_bytes\":3,\"stack_bytes\":4,"
            "\"static_smem_bytes\":2},"
            "{\"name\":\"a\"}]}");
  const auto back = kernel_infos(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, kernels);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(kernel_infos(std::string_view(text).substr(0, size)).status()))
        << size;
  }
  EXPECT_FALSE(kernel_infos("{\"kernels\":[{\"name\":1}]}").ok());
  EXPECT_FALSE(kernel_infos("{\"kernels\":[{\"name\":\"a\",\"registers\":\"x\"}]}").ok());
}

TEST(ElfSymbolsTest, BytesThatAreNoImageHaveNoFunctions) {
  EXPECT_TRUE(defined_functions("").empty());
  EXPECT_TRUE(defined_functions(std::string(4096, '\x7f')).empty());
}

}  // namespace
}  // namespace kiln::jit
