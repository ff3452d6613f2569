#include "jit/nvrtc_compiler.h"

#include "jit/elf_symbols.h"
#include "jit/target.h"
#include "tests/jit/jit_test_util.h"

#include <absl/time/clock.h>
#include <cuda.h>

#include <cstdio>
#include <fstream>
#include <thread>

namespace kiln::jit {
namespace {

class NvrtcTargetTest : public testing::TestWithParam<const char*> {};

TEST_P(NvrtcTargetTest, CompilesALeanKernel) {
  const auto compiler = make_nvrtc_compiler();
  const auto result = compiler->compile(lean_request(GetParam()));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kind, "cubin");
  EXPECT_EQ(defined_functions(result->image), std::vector<std::string>{"lean"});
  ASSERT_EQ(result->kernels.size(), 1u);
  EXPECT_EQ(result->kernels[0].name, "lean");
  EXPECT_GT(result->kernels[0].registers, 0);
  EXPECT_EQ(result->kernels[0].static_smem_bytes % 1024,
            512);  // later archs add the kilobyte the system reserves
  EXPECT_EQ(result->kernels[0].spill_bytes, 0);
  EXPECT_EQ(result->log, "");
}

INSTANTIATE_TEST_SUITE_P(Archs, NvrtcTargetTest,
                         testing::Values("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100",
                                         "sm_120"),
                         [](const auto& test) { return std::string(test.param); });

TEST(NvrtcCompilerTest, VirtualArchGivesPtx) {
  const auto result = make_nvrtc_compiler()->compile(lean_request("compute_90"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kind, "ptx");
  EXPECT_NE(result->image.find(".target sm_90"), std::string::npos);
  EXPECT_EQ(result->kernels[0].name, "lean");
  EXPECT_EQ(result->kernels[0].registers, -1);
}

TEST(NvrtcCompilerTest, TimeOfALeanKernel) {
  const auto compiler = make_nvrtc_compiler();
  for (const char* run : {"first", "second", "third"}) {
    const absl::Time start = absl::Now();
    ASSERT_TRUE(compiler->compile(lean_request("sm_90a")).ok());
    std::printf("lean kernel, %s compilation: %.1f ms\n", run,
                absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  const absl::Time start = absl::Now();
  ASSERT_TRUE(compiler->id().ok());
  std::printf("id: %.1f us\n", absl::ToDoubleMicroseconds(absl::Now() - start));
}

TEST(NvrtcCompilerTest, ToolkitHeadersAreFound) {
  CompileRequest request = lean_request("sm_90");
  request.source =
      "#include <cuda_fp16.h>\nextern \"C\" __global__ void lean(__half* p) { *p = "
      "__float2half(1.5f); }\n";
  const auto result = make_nvrtc_compiler()->compile(request);
  ASSERT_TRUE(result.ok()) << result.status();
}

TEST(NvrtcCompilerTest, BytesDependOnNeitherPlaceNorEnvironmentNorHistory) {
  const auto compiler = make_nvrtc_compiler();
  const auto first = compiler->compile(lean_request("sm_90a"));
  ASSERT_TRUE(first.ok()) << first.status();
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/test");
  std::ofstream(folder.path() + "/test/scale.cuh") << "#error not this one\n";
  const CurrentFolder restore;
  std::filesystem::current_path(folder.path());
  setenv("CPATH", folder.path().c_str(), 1);
  const CommaLocale comma;
  ASSERT_TRUE(compiler->compile(lean_request("sm_80")).ok());
  const auto second = compiler->compile(lean_request("sm_90a"));
  unsetenv("CPATH");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(first->image == second->image);
}

TEST(NvrtcCompilerTest, ALocaleWithCommasChangesNoByte) {
  CompileRequest request = lean_request("sm_90");
  request.source =
      "extern \"C\" __global__ void lean(float* p) { *p = 0.5f; }\n"
      "static_assert(1.25f * 4 == 5);\n";
  const auto before = make_nvrtc_compiler()->compile(request);
  ASSERT_TRUE(before.ok()) << before.status();
  const GermanLocale german;
  const auto after = make_nvrtc_compiler()->compile(request);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->image == before->image);
}

TEST(NvrtcCompilerTest, BytesDoNotDependOnWhereTheToolkitLies) {
  const auto library = load_nvrtc({});
  ASSERT_TRUE(library.ok()) << library.status();
  const ScratchFolder folder;
  std::filesystem::create_directory_symlink(library->include_dir, folder.path() + "/moved");
  CompileRequest request = lean_request("sm_90");
  request.source =
      "#include <cuda_fp16.h>\nextern \"C\" __global__ void lean(__half* p) { *p = hsin(*p); }\n";
  const auto here = make_nvrtc_compiler();
  const auto there = make_nvrtc_compiler({.include_dir = folder.path() + "/moved"});
  EXPECT_EQ(*here->id(), *there->id());
  const auto first = here->compile(request);
  const auto second = there->compile(request);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_TRUE(first->image == second->image);
}

// NVRTC by itself reads beyond a buffer here: AddressSanitizer tells when Kiln stops preventing it.
TEST(NvrtcCompilerTest, CompilesWhereTheCurrentFolderIsGone) {
  const auto before = make_nvrtc_compiler()->compile(lean_request("sm_90"));
  const CurrentFolder restore;
  {
    const ScratchFolder gone;
    std::filesystem::current_path(gone.path());
  }
  const auto result = make_nvrtc_compiler()->compile(lean_request("sm_90"));
  ASSERT_TRUE(before.ok() && result.ok()) << result.status();
  EXPECT_TRUE(before->image == result->image);
  std::error_code error;
  const std::filesystem::path now = std::filesystem::current_path(error);
  EXPECT_TRUE(error) << "the process is now in " << now;
}

TEST(NvrtcCompilerTest, CompilesInAFolderWithALongPath) {
  const CurrentFolder restore;
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  const std::string part(200, 'd');
  for (int i = 0; i < 18; ++i) {
    std::filesystem::create_directory(part);
    std::filesystem::current_path(part);
  }
  const auto result = make_nvrtc_compiler()->compile(lean_request("sm_90"));
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(NvrtcCompilerTest, ConstantsOfAnyNameLeaveNvrtcsOwnHeaderAlone) {
  CompileRequest request = lean_request("sm_90");
  request.source += "static_assert(T == 3 && N == 4 && size == 5);\n";
  request.defines.insert(request.defines.end(), {"T=3", "N=4", "size=5"});
  const auto result = make_nvrtc_compiler()->compile(request);
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(NvrtcCompilerTest, HeadersThatAreNotListedAreNotFound) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/test");
  std::ofstream(folder.path() + "/test/scale.cuh")
      << "__device__ float scale(float x) { return x; }\n";
  const CurrentFolder restore;
  std::filesystem::current_path(folder.path());
  CompileRequest request = lean_request("sm_90");
  request.headers.clear();
  const auto result = make_nvrtc_compiler()->compile(request);
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "cannot open source file \"test/scale.cuh\""))
      << result.status();
}

TEST(NvrtcCompilerTest, ACompileErrorNamesTheSourceAndLine) {
  CompileRequest request = lean_request("sm_90");
  request.source += "int broken( {\n";
  const auto result = make_nvrtc_compiler()->compile(request);
  EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "kernel_sources/test/lean.cu(8): error"))
      << result.status();
}

TEST(NvrtcCompilerTest, WarningsStayAndFiguresDoNot) {
  CompileRequest request = lean_request("sm_90");
  request.source += "__global__ void other() { int unused; }\n";
  const auto result = make_nvrtc_compiler()->compile(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->log.find("unused"), std::string::npos);
  EXPECT_EQ(result->log.find("ptxas info"), std::string::npos);
}

TEST(NvrtcCompilerTest, KernelsThatAreMissingAreNamed) {
  for (const char* target : {"sm_80", "sm_90a", "sm_120", "compute_80"}) {
    CompileRequest request = lean_request(target);
    request.kernels = {"lean", "absent", "scale"};
    const auto result = make_nvrtc_compiler()->compile(request);
    EXPECT_TRUE(is_compile_error(result.status()));
    EXPECT_TRUE(contains(result.status(), "missing absent, scale; it has lean")) << result.status();
  }
}

TEST(NvrtcCompilerTest, ANewerArchIsToldWithTheToolkitThatKnowsIt) {
  const auto newer = make_nvrtc_compiler()->compile(lean_request("sm_990"));
  EXPECT_TRUE(contains(newer.status(), "a newer one of both may")) << newer.status();
  EXPECT_EQ(first_toolkit_of(90), "12.8");
  EXPECT_EQ(first_toolkit_of(103), "12.9");
  EXPECT_EQ(first_toolkit_of(110), "13.0");
  EXPECT_EQ(first_toolkit_of(990), "");
}

TEST(NvrtcCompilerTest, UnknownArchIsNamedWithThoseThatAreKnown) {
  for (const char* target : {"sm_77", "sm_9", "90", "sm_90x", "sm_", ""}) {
    const auto result = make_nvrtc_compiler()->compile(lean_request(target));
    EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
    EXPECT_TRUE(contains(result.status(), "80, 86,") &&
                contains(result.status(), std::string("'") + target + "'"))
        << result.status();
  }
}

TEST(NvrtcCompilerTest, AnOptionThatNvrtcDoesNotKnowIsNamed) {
  CompileRequest request = lean_request("sm_90");
  request.options = {"--no-such-option"};
  const auto result = make_nvrtc_compiler()->compile(request);
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "--no-such-option")) << result.status();
}

TEST(NvrtcCompilerTest, IdHoldsTheBuildOfTheLibraryAndTheHeadersVersion) {
  const auto id = make_nvrtc_compiler()->id();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(id->name, "nvrtc");
  const auto library = load_nvrtc({});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_TRUE(id->build.starts_with(library->build + "-")) << id->build;
  EXPECT_EQ(id->headers, std::to_string(CUDA_VERSION)) << id->headers;
  std::printf("nvrtc %s, headers %s, %s\n", id->build.c_str(), id->headers.c_str(),
              library->path.c_str());
}

TEST(NvrtcCompilerTest, ManyThreadsCompileAtOnce) {
  const auto compiler = make_nvrtc_compiler();
  std::vector<absl::StatusOr<CompileResult>> results(24, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = compiler->compile(lean_request(i % 2 == 0 ? "sm_80" : "sm_90a")); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    EXPECT_TRUE(results[i]->image == results[i % 2]->image);
  }
}

}  // namespace
}  // namespace kiln::jit
