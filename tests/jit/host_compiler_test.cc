#include <kiln/host_compiler.h>

#include "tests/jit/jit_test_util.h"

#include <array>
#include <dlfcn.h>
#include <fstream>
#include <sys/stat.h>

namespace kiln::jit {
namespace {

TEST(HostCompilerTest, BuildsAnObjectThatCanBeCalled) {
  const auto compiler = make_host_compiler();
  const auto result = compiler->compile(host_request());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kind, "host_object");
  ASSERT_EQ(result->kernels.size(), 1u);
  EXPECT_EQ(result->kernels[0].name, "kiln_test_sum");
  const ScratchFolder folder;
  const std::string path = folder.path() + "/image.so";
  std::ofstream(path, std::ios::binary) << result->image;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto sum = reinterpret_cast<long (*)(const int*, long)>(dlsym(handle, "kiln_test_sum"));
  ASSERT_NE(sum, nullptr);
  const std::array<int, 4> values = {1, 2, 3, 4};
  EXPECT_EQ(sum(values.data(), 4), 30);
  dlclose(handle);
}

TEST(HostCompilerTest, BytesDependOnNeitherPlaceNorEnvironment) {
  CompileRequest request = host_request();
  request.source +=
      "namespace { int here() { return 1; } }\nextern \"C\" const char* f() { return here() ? "
      "__FILE__ : 0; }\n";
  request.options = {"-g"};
  const ScratchFolder one;
  const ScratchFolder two;
  std::ofstream(two.path() + "/cstdint") << "#error found through CPATH\n";
  const auto first = make_host_compiler({.temp_dir = one.path()})->compile(request);
  ASSERT_TRUE(first.ok()) << first.status();
  const CurrentFolder restore;
  std::filesystem::current_path(two.path());
  setenv("CPATH", two.path().c_str(), 1);
  const auto second = make_host_compiler({.temp_dir = two.path()})->compile(request);
  unsetenv("CPATH");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(first->image == second->image);
  EXPECT_EQ(first->image.find(one.path()), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(one.path())) << "the compiler left files behind";
}

TEST(HostCompilerTest, CpathDoesNotReachTheCompiler) {
  const ScratchFolder folder;
  std::ofstream(folder.path() + "/cstdint") << "#error found through CPATH\n";
  CompileRequest request = host_request();
  request.source = "#include <cstdint>\n" + request.source.str();
  setenv("CPATH", folder.path().c_str(), 1);
  const auto result = make_host_compiler()->compile(request);
  unsetenv("CPATH");
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(HostCompilerTest, ACompileErrorNamesTheSourceAndLine) {
  CompileRequest request = host_request();
  request.source += "int broken( {\n";
  const auto result = make_host_compiler()->compile(request);
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "backends/test/sum.cc:7:")) << result.status();
}

TEST(HostCompilerTest, HeadersThatAreNotListedAreNotFound) {
  CompileRequest request = host_request();
  request.headers.clear();
  const auto result = make_host_compiler()->compile(request);
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "test/step.h")) << result.status();
}

TEST(HostCompilerTest, KernelsThatAreMissingAreNamed) {
  CompileRequest request = host_request();
  request.kernels = {"kiln_test_sum", "absent"};
  const auto result = make_host_compiler()->compile(request);
  EXPECT_TRUE(is_compile_error(result.status()));
  EXPECT_TRUE(contains(result.status(), "missing absent")) << result.status();
}

TEST(HostCompilerTest, UndefinedFunctionsAreErrorsOfTheBuild) {
  CompileRequest request = host_request();
  request.source += "long elsewhere();\nextern \"C\" long g() { return elsewhere(); }\n";
  EXPECT_TRUE(is_compile_error(make_host_compiler()->compile(request).status()));
}

TEST(HostCompilerTest, NativeAndOddTargetsAreRefused) {
  for (const char* target : {"", "native", "x86-64 -o x", "sm_90;"}) {
    CompileRequest request = host_request();
    request.target = target;
    EXPECT_TRUE(absl::IsInvalidArgument(make_host_compiler()->compile(request).status())) << target;
  }
}

TEST(HostCompilerTest, AMissingCompilerIsNamedWithWhereItWasSought) {
  const auto compiler =
      make_host_compiler({.compiler = "no-such-c++", .search_path = "/usr/bin:/bin"});
  for (const absl::Status& status :
       {compiler->id().status(), compiler->compile(host_request()).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_TRUE(contains(status, "no-such-c++") && contains(status, "/usr/bin:/bin")) << status;
  }
}

std::string make_script(const ScratchFolder& folder, const std::string& body) {
  const std::string path = folder.path() + "/c++";
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  chmod(path.c_str(), 0700);
  return path;
}

TEST(HostCompilerTest, ACompilerThatHangsIsKilled) {
  const ScratchFolder folder;
  const auto compiler = make_host_compiler(
      {.compiler = make_script(folder, "sleep 60"), .timeout = std::chrono::milliseconds(300)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(compiler->compile(host_request()).status()));
}

TEST(HostCompilerTest, ACompilerThatIsKilledIsNotASourceError) {
  const ScratchFolder folder;
  const auto compiler = make_host_compiler({.compiler = make_script(folder, "kill -KILL $$")});
  const absl::Status status = compiler->compile(host_request()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_FALSE(is_compile_error(status));
}

TEST(HostCompilerTest, SuccessWithoutAnImageIsAnError) {
  const ScratchFolder folder;
  const auto compiler = make_host_compiler({.compiler = make_script(folder, "exit 0")});
  EXPECT_FALSE(compiler->compile(host_request()).ok());
  const auto empty = make_host_compiler({.compiler = make_script(folder, ": > ../image.so")});
  EXPECT_FALSE(empty->compile(host_request()).ok());
}

TEST(HostCompilerTest, IdTellsCompilersApart) {
  const auto id = make_host_compiler()->id();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(id->name, "c++");
  EXPECT_EQ(*id, *make_host_compiler()->id());
  EXPECT_TRUE(id->headers.starts_with("glibc "));
  const ScratchFolder folder;
  const auto wrapped =
      make_host_compiler({.compiler = make_script(folder, "exec /usr/bin/c++ \"$@\"")})->id();
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_NE(*id, *wrapped);
}

}  // namespace
}  // namespace kiln::jit
