#include "jit/engine.h"
#include "tests/jit/jit_test_util.h"

#include <set>

namespace kiln::jit {
namespace {

const Program kProgram = {
    .source = "k/a.cu",
    .headers = {"k/one.cuh", "k/two.cuh"},
    .kernels = {"a"},
    .constants = {{.name = "N", .value = std::int64_t{4}}, {.name = "EPS", .value = 1e-5}},
    .options = {"-use_fast_math"}};
const CompilerId kId = {.name = "nvrtc", .build = "13.0-abc", .headers = "13000"};

SourceTable table() {
  return {{"k/a.cu", "#include \"k/one.cuh\"\n"},
          {"k/one.cuh", "#include \"k/two.cuh\"\n"},
          {"k/two.cuh", "// the third level\n"},
          {"k/b.cu", "#include \"k/one.cuh\"\n"}};
}

cache::Artifact described(const SourceTable& sources_table, const Program& program,
                          std::string_view target = "sm_90", const CompilerId& id = kId) {
  Sources sources;
  EXPECT_TRUE(sources.add(sources_table).ok());
  const auto store = cache::make_store({});
  const Engine engine(sources, *store);
  const auto request = engine.request_for(program, target);
  EXPECT_TRUE(request.ok()) << request.status();
  return engine.describe(*request, id);
}

TEST(EngineKeyTest, EveryFieldOfTheSourceChangesTheKey) {
  std::set<std::string> keys = {to_hex(described(table(), kProgram).key)};
  std::size_t expected = 1;
  const auto expect_new = [&](const cache::Artifact& artifact, const char* what) {
    keys.insert(to_hex(artifact.key));
    EXPECT_EQ(keys.size(), ++expected) << what;
  };
  for (const char* file : {"k/a.cu", "k/one.cuh", "k/two.cuh"}) {
    SourceTable edited = table();
    const std::string text = std::string(edited[file]) + " ";
    edited[file] = text;
    expect_new(described(edited, kProgram), file);
  }
  const auto expect_edit = [&](auto edit, const char* what) {
    Program program = kProgram;
    edit(program);
    expect_new(described(table(), program), what);
  };
  expect_edit([](Program& p) { p.source = "k/b.cu"; }, "another name with the same text");
  expect_edit([](Program& p) { p.headers.pop_back(); }, "a header less");
  expect_edit([](Program& p) { p.kernels = {"b"}; }, "kernels");
  expect_edit([](Program& p) { p.kernels.push_back("b"); }, "a kernel more");
  expect_edit([](Program& p) { p.constants[0].value = std::int64_t{5}; }, "an integer");
  expect_edit([](Program& p) { p.constants[0].value = true; }, "a type");
  expect_edit([](Program& p) { p.constants[1].value = 1.0000000000000001e-5; },
              "the last bit of a double");
  expect_edit([](Program& p) { p.constants[0].name = "M"; }, "a name");
  expect_edit([](Program& p) { p.options.clear(); }, "no options");
  expect_edit([](Program& p) { p.options.push_back("-lineinfo"); }, "an option more");
  expect_new(described(table(), kProgram, "sm_90a"), "sm_90a is not sm_90");
  expect_new(described(table(), kProgram, "sm_80"), "target");
  expect_new(described(table(), kProgram, "sm_90", {"g++", kId.build, kId.headers}),
             "compiler name");
  expect_new(described(table(), kProgram, "sm_90", {kId.name, "13.0-abd", kId.headers}),
             "compiler build");
  expect_new(described(table(), kProgram, "sm_90", {kId.name, kId.build, "13001"}),
             "toolkit headers");
}

TEST(EngineKeyTest, SourceAndCompilerHaveKeysOfTheirOwn) {
  const cache::Artifact base = described(table(), kProgram);
  const cache::Artifact other = described(table(), kProgram, "sm_90", {"nvrtc", "other", ""});
  EXPECT_EQ(base.key.source, other.key.source);
  EXPECT_NE(base.key.compiler, other.key.compiler);
}

TEST(EngineKeyTest, WhatDoesNotReachTheBinaryIsNotInTheKey) {
  const std::string key = to_hex(described(table(), kProgram).key);
  Program reordered = kProgram;
  std::swap(reordered.headers[0], reordered.headers[1]);
  reordered.headers.push_back("k/one.cuh");
  EXPECT_EQ(to_hex(described(table(), reordered).key), key) << "order and repetition of headers";
  Program wish = kProgram;
  wish.arch_specific = true;  // speaks through the target alone
  EXPECT_EQ(to_hex(described(table(), wish).key), key);
  const ScratchFolder folder;
  const CurrentFolder restore;
  std::filesystem::current_path(folder.path());
  setenv("CPATH", folder.path().c_str(), 1);
  const CommaLocale comma;
  EXPECT_EQ(to_hex(described(table(), kProgram).key), key) << "current folder, environment, locale";
  unsetenv("CPATH");
}

TEST(EngineKeyTest, BadProgramsAreRefused) {
  Sources sources;
  ASSERT_TRUE(sources.add(table()).ok());
  const auto store = cache::make_store({});
  const Engine engine(sources, *store);
  const auto refused = [&](auto edit) {
    Program program = kProgram;
    edit(program);
    return engine.request_for(program, "sm_90").status();
  };
  EXPECT_TRUE(absl::IsNotFound(refused([](Program& p) { p.source = "k/c.cu"; })));
  EXPECT_TRUE(absl::IsNotFound(refused([](Program& p) { p.headers.push_back("k/three.cuh"); })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Program& p) { p.kernels = {"a b"}; })));
  EXPECT_TRUE(
      absl::IsInvalidArgument(refused([](Program& p) { p.constants.push_back(p.constants[0]); })));
  const absl::Status infinite = refused([](Program& p) { p.constants[1].value = 1e308 * 10; });
  EXPECT_TRUE(contains(infinite, "k/a.cu") && contains(infinite, "EPS")) << infinite;
}

}  // namespace
}  // namespace kiln::jit
