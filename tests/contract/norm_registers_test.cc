// Row norms in their default configurations need no local memory: what a block holds of its row
// stays in registers, on every kind of board, for lengths with whole tiles and without.
#include "cache/artifact.h"
#include "jit/metadata.h"
#include "runtime/boards.h"
#include "runtime/tools.h"
#include "tests/support/families.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/strings/substitute.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace kiln::testing {
namespace {

struct Form {
  const char* op;
  const char* inputs;  // after x; $0: dtype, $1: elements of a row, $2: rows
};
constexpr Form kRowForms[] = {
    {"LayerNormFwdOp",
     R"("weight":{"dtype":"$0","shape":[$1]},"bias":{"dtype":"$0","shape":[$1]})"},
    {"RMSNormFwdOp", R"("weight":{"dtype":"$0","shape":[$1]})"},
    {"FusedAddLayerNormFwdOp",
     R"("residual":{"dtype":"$0","shape":[$2,$1]},"weight":{"dtype":"$0","shape":[$1]},)"
     R"("bias":{"dtype":"$0","shape":[$1]})"},
    {"FusedAddRMSNormFwdOp",
     R"("residual":{"dtype":"$0","shape":[$2,$1]},"weight":{"dtype":"$0","shape":[$1]})"},
    {"AdaLayerNormFwdOp",
     R"("scale":{"dtype":"$0","shape":[$2,$1]},"shift":{"dtype":"$0","shape":[$2,$1]})"},
    {"AdaLayerNormZeroFwdOp",
     R"("scale":{"dtype":"$0","shape":[$2,$1]},"shift":{"dtype":"$0","shape":[$2,$1]},)"
     R"("gate":{"dtype":"$0","shape":[$2,$1]})"},
};

class NormRegistersTest : public ::testing::TestWithParam<std::string> {};

TEST_P(NormRegistersTest, DefaultsSpillNothing) {
  const TempDir cache;
  // Ends before the files are read: it may keep the last of them behind the call.
  std::optional<Runtime> runtime(in_tree_options(cache.path()));
  const auto facts = board_facts(GetParam());
  ASSERT_THAT(facts, is_ok());
  std::string lines;
  for (const Form& form : kRowForms) {
    for (const auto& [dtype, bytes] : {std::pair("bfloat16", 2), std::pair("float32", 4)}) {
      if (bytes == 4 && std::string_view(form.op).find("RMS") != std::string_view::npos) continue;
      for (const int packs :
           {96,  144,  160,  200,  256,  320,  384,  400,  500,  512,  513,  576,  640,  704, 768,
            896, 1000, 1024, 1025, 1152, 1280, 1500, 1536, 1664, 1792, 1984, 2016, 2047, 2048}) {
        const int n = packs * 16 / bytes;
        for (const int rows : {8, 64})
          absl::StrAppend(
              &lines,
              absl::Substitute(
                  R"({"op":"$0","params":{"normalized_shape":[$1]},"inputs":{"x":{"dtype":"$2",)"
                  R"("shape":[$4,$1]},$3}})",
                  form.op, n, dtype, absl::Substitute(form.inputs, dtype, n, rows), rows),
              "\n");
      }
    }
  }
  const auto calls = problems_of(*runtime, {"norm", lines});
  ASSERT_THAT(calls, is_ok());
  std::map<cache::CompileKey, std::string> rows;  // by the program that normalises them
  for (const internal::CallLine& line : *calls) {
    const auto op = runtime->create_op(line.call.op, line.call.params, {.runtime = &*runtime});
    ASSERT_THAT(op, is_ok());
    const auto warmed = tools::warm_call(**op, line.call.args, DeviceType::cuda(), *facts);
    ASSERT_THAT(warmed, is_ok()) << line.call.op;
    rows[warmed->at(0).programs.at(0).key] =
        line.call.op + to_string(line.call.args.inputs[0]->spec.shape);
  }
  runtime.reset();
  int kernels = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache.path())) {
    if (file.path().extension() != ".kiln") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const auto artifact = cache::parse_artifact(bytes);
    ASSERT_THAT(artifact, is_ok());
    const auto infos = jit::kernel_infos(artifact->metadata);
    ASSERT_THAT(infos, is_ok());
    for (const KernelInfo& kernel : *infos) {
      ++kernels;
      EXPECT_EQ(kernel.spill_bytes, 0) << kernel.name << " " << rows[artifact->key];
    }
  }
  EXPECT_GE(kernels, static_cast<int>(rows.size()));
}

INSTANTIATE_TEST_SUITE_P(Boards, NormRegistersTest,
                         ::testing::Values("a100", "l40s", "h200", "b200", "rtx5090"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace kiln::testing
