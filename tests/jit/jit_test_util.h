#ifndef KILN_TESTS_JIT_JIT_TEST_UTIL_H_
#define KILN_TESTS_JIT_JIT_TEST_UTIL_H_

#include <kiln/compiler.h>
#include <kiln/status.h>

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <stdlib.h>
#include <string>

namespace kiln::jit {

// A folder of this test, removed with all in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    path_ = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Restores the current directory.
class CurrentFolder {
 public:
  CurrentFolder() : before_(std::filesystem::current_path()) {}
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;
  ~CurrentFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

// Numbers are written "1.234,5" while it lives, as under de_DE, which a machine may not have.
class CommaLocale {
 public:
  CommaLocale() : before_(std::locale::global(std::locale(std::locale::classic(), new Commas))) {}
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() { std::locale::global(before_); }

 private:
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

// The C library writes "1,5", too, while it lives: printf, strtod, and what a child inherits. A
// real de_DE, made here, since a machine may not have it.
class GermanLocale {
 public:
  GermanLocale() : before_(std::setlocale(LC_ALL, nullptr)) {
    const std::string made = "localedef -f UTF-8 -i de_DE '" + folder_.path() + "/de_DE.UTF-8'";
    EXPECT_EQ(std::system(made.c_str()), 0) << "the package `locales` has what localedef reads";
    setenv("LOCPATH", folder_.path().c_str(), 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    EXPECT_NE(std::setlocale(LC_ALL, ""), nullptr);
  }
  GermanLocale(const GermanLocale&) = delete;
  GermanLocale& operator=(const GermanLocale&) = delete;
  ~GermanLocale() {
    unsetenv("LC_ALL");
    unsetenv("LOCPATH");
    std::setlocale(LC_ALL, before_.c_str());
  }

 private:
  const ScratchFolder folder_;
  const std::string before_;
};

// A kernel on nothing but the language.
inline CompileRequest lean_request(std::string target) {
  return {.source_name = "kernel_sources/test/lean.cu",
          .source =
              "#include \"test/scale.cuh\"\n"
              "extern \"C\" __global__ void lean(float* p, int n) {\n"
              "  __shared__ float row[128];\n"
              "  row[threadIdx.x] = p[n + threadIdx.x];\n"
              "  __syncthreads();\n"
              "  p[threadIdx.x] = scale(row[127 - threadIdx.x]);\n"
              "}\n",
          .headers = {{"test/scale.cuh",
                       "__device__ inline float scale(float x) { return x * float(FACTOR); }\n"}},
          .defines = {"FACTOR=0x1.8p+0"},
          .kernels = {"lean"},
          .target = std::move(target)};
}

inline CompileRequest host_request() {
  return {.source_name = "backends/test/sum.cc",
          .source =
              "#include \"test/step.h\"\n"
              "extern \"C\" long kiln_test_sum(const int* p, long n) {\n"
              "  long sum = 0;\n"
              "  for (long i = 0; i < n; ++i) sum += step(p[i]);\n"
              "  return sum;\n"
              "}\n",
          .headers = {{"test/step.h", "static long step(int x) { return long(STEP) * x; }\n"}},
          .defines = {"STEP=3"},
          .kernels = {"kiln_test_sum"},
          .target = "x86-64-v2"};
}

inline bool contains(const absl::Status& status, std::string_view text) {
  return message_of(status).find(text) != std::string::npos;
}

}  // namespace kiln::jit

#endif  // KILN_TESTS_JIT_JIT_TEST_UTIL_H_
