#include "jit/nvrtc_library.h"

#include <kiln/host_compiler.h>

#include "tests/jit/jit_test_util.h"

#include <algorithm>
#include <fstream>

namespace kiln::jit {
namespace {

// A library with the functions `names` that says it is NVRTC `major`.`minor`: real files for the
// loader to find unfit.
std::string make_library(const ScratchFolder& folder, const std::vector<std::string>& names,
                         int major, int minor) {
  CompileRequest request{.source_name = "fake.cc", .target = "x86-64"};
  for (const std::string& name : names) {
    request.source += name == "nvrtcVersion"
                          ? "extern \"C\" int nvrtcVersion(int* a, int* b) { *a = MAJOR; *b = "
                            "MINOR; return 0; }\n"
                          : "extern \"C\" int " + name + "(int* a) { if (a) *a = 0; return 0; }\n";
  }
  request.defines = {"MAJOR=" + std::to_string(major), "MINOR=" + std::to_string(minor)};
  const auto result = make_host_compiler()->compile(request);
  EXPECT_TRUE(result.ok()) << result.status();
  const std::string path = folder.path() + "/libnvrtc.so";
  std::ofstream(path, std::ios::binary) << (result.ok() ? result->image : "");
  return path;
}

TEST(NvrtcLibraryTest, IsFoundAndDescribed) {
  const auto library = load_nvrtc({});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_GE(library->major * 1000 + library->minor, 12008);
  EXPECT_TRUE(std::filesystem::exists(library->path)) << library->path;
  EXPECT_NE(std::find(library->archs.begin(), library->archs.end(), 90), library->archs.end());
  EXPECT_GE(library->build.size(), 40u) << library->build;  // more than the version
}

TEST(NvrtcLibraryTest, AMissingLibraryTellsWhereItWasSoughtAndWhatToInstall) {
  const auto library = load_nvrtc({.library = "/nonexistent/libnvrtc.so"});
  EXPECT_TRUE(absl::IsFailedPrecondition(library.status()));
  EXPECT_TRUE(contains(library.status(), "looked for /nonexistent/libnvrtc.so"))
      << library.status();
  EXPECT_TRUE(contains(library.status(), "install the CUDA Toolkit 12.8 or newer"))
      << library.status();
}

TEST(NvrtcLibraryTest, AMissingFunctionIsNamed) {
  const ScratchFolder folder;
  std::vector<std::string> names = nvrtc_function_names();
  names.erase(std::remove(names.begin(), names.end(), "nvrtcGetCUBIN"), names.end());
  const auto library = load_nvrtc({.library = make_library(folder, names, 13, 0)});
  EXPECT_TRUE(absl::IsFailedPrecondition(library.status()));
  EXPECT_TRUE(contains(library.status(), "must have the function nvrtcGetCUBIN"))
      << library.status();
}

TEST(NvrtcLibraryTest, AnOldReleaseIsTold) {
  const ScratchFolder folder;
  const auto library = load_nvrtc({.library = make_library(folder, nvrtc_function_names(), 12, 2)});
  EXPECT_TRUE(absl::IsFailedPrecondition(library.status()));
  EXPECT_TRUE(contains(library.status(), "must be 12.8 or newer") &&
              contains(library.status(), "is 12.2"))
      << library.status();
}

TEST(NvrtcLibraryTest, MissingBuiltinsAreTold) {
  const ScratchFolder folder;
  const auto library =
      load_nvrtc({.library = make_library(folder, nvrtc_function_names(), 12, 99)});
  EXPECT_TRUE(absl::IsFailedPrecondition(library.status()));
  EXPECT_TRUE(contains(library.status(), folder.path() + "/libnvrtc-builtins.so.12.99"))
      << library.status();
}

TEST(NvrtcLibraryTest, AFileThatIsNoLibraryTellsWhy) {
  const ScratchFolder folder;
  std::ofstream(folder.path() + "/libnvrtc.so") << "text";
  const auto library = load_nvrtc({.library = folder.path() + "/libnvrtc.so"});
  EXPECT_TRUE(contains(library.status(), "file too short") ||
              contains(library.status(), "invalid ELF"))
      << library.status();
}

TEST(NvrtcLibraryTest, AnIncludeFolderThatWasGivenMustBeOne) {
  EXPECT_FALSE(load_nvrtc({.include_dir = "/nonexistent"}).ok());
}

TEST(NvrtcLibraryTest, EveryResultHasAStatus) {
  EXPECT_TRUE(nvrtc_status(NVRTC_SUCCESS, "x").ok());
  EXPECT_TRUE(is_compile_error(nvrtc_status(NVRTC_ERROR_COMPILATION, "x")));
  EXPECT_TRUE(absl::IsResourceExhausted(nvrtc_status(NVRTC_ERROR_OUT_OF_MEMORY, "x")));
  for (int result = 1; result < 32; ++result) {
    EXPECT_TRUE(contains(nvrtc_status(static_cast<nvrtcResult>(result), "x"),
                         "(" + std::to_string(result) + ")"));
  }
}

}  // namespace
}  // namespace kiln::jit
