#include "jit/hermetic.h"

#include "tests/jit/jit_test_util.h"

namespace kiln::jit {
namespace {

absl::Status check_source(std::string source) {
  CompileRequest request = lean_request("sm_80");
  request.source = std::move(source);
  return check_hermetic(request);
}

TEST(HermeticTest, ClockMacrosAreRefusedWithFileAndLine) {
  const absl::Status status = check_source("int a;\nint b;\nconst char* t = __TIME__;\n");
  EXPECT_TRUE(is_compile_error(status));
  EXPECT_TRUE(contains(status, "kernel_sources/test/lean.cu:3: ")) << status;
  EXPECT_TRUE(contains(status, "got __TIME__")) << status;
  EXPECT_FALSE(check_source("x(__DATE__)").ok());
  EXPECT_FALSE(check_source("\r\n__TIMESTAMP__\r\n").ok());
  EXPECT_TRUE(check_source("int my__TIME__; int __TIME__2; int __DATES__;").ok());
}

TEST(HermeticTest, ClockMacrosInHeadersAndDefinesAreRefused) {
  CompileRequest request = lean_request("sm_80");
  request.headers.emplace_back("test/third.cuh", "\n#define WHEN __DATE__\n");
  EXPECT_TRUE(contains(check_hermetic(request), "test/third.cuh:2: "));
  request = lean_request("sm_80");
  request.defines.push_back("WHEN=__DATE__");
  EXPECT_FALSE(check_hermetic(request).ok());
}

TEST(HermeticTest, IncludesThatLeaveTheProgramAreRefused) {
  EXPECT_FALSE(check_source("#include \"/etc/hostname\"\n").ok());
  EXPECT_FALSE(check_source("  #  include <../x.h>\n").ok());
  EXPECT_FALSE(check_source("#include \"a/../../x.h\"\n").ok());
  EXPECT_TRUE(check_source("#include <cuda_fp16.h>\n#include \"a/..b/x.h\"\n").ok());
}

TEST(HermeticTest, ZeroBytesAreRefused) {
  const absl::Status status = check_source(std::string("int a;\nint b;\0int c;", 19));
  EXPECT_TRUE(contains(status, "lean.cu:2: ")) << status;
}

TEST(HermeticTest, OptionsThatReadFilesAreRefused) {
  for (const char* option : {"-I/usr/include", "--include-path=/x", "-include",
                             "--gpu-architecture=sm_80", "-arch=sm_80", "-march=native", "-o",
                             "x.cc", "", "@file", "--use-pch=x", "-fplugin=x.so"}) {
    CompileRequest request = lean_request("sm_80");
    request.options = {option};
    EXPECT_TRUE(absl::IsInvalidArgument(check_hermetic(request))) << option;
  }
  CompileRequest request = lean_request("sm_80");
  request.options = {"-use_fast_math", "--maxrregcount=64", "-lineinfo",
                     "-Xptxas=-O3",    "-fopenmp",          "-lm"};
  EXPECT_TRUE(check_hermetic(request).ok()) << check_hermetic(request);
}

TEST(HermeticTest, SourceNamesStayInside) {
  for (const char* name : {"", "/a", "a//b", "../a", "a/../b", "./a", "a/", "a/."}) {
    EXPECT_FALSE(check_source_name(name).ok()) << name;
  }
  for (const char* name : {"a", "a/b.cuh", "a b/c'd;e.h", "..a"})
    EXPECT_TRUE(check_source_name(name).ok()) << name;
}

}  // namespace
}  // namespace kiln::jit
