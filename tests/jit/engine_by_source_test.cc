#include <kiln/host_compiler.h>

#include "cache/pack.h"
#include "jit/engine.h"
#include "jit/nvrtc_compiler.h"
#include "tests/jit/jit_test_util.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sys/stat.h>

// A machine without a toolkit serves from what one with a toolkit made: by the source key, whatever
// compiled it.
namespace kiln::jit {
namespace {

Program lean_program(double factor = 1.5) {
  return {.source = "kernel_sources/test/lean.cu",
          .headers = {"test/scale.cuh"},
          .kernels = {"lean"},
          .constants = {{.name = "FACTOR", .value = factor}}};
}

class EngineBySourceTest : public testing::Test {
 protected:
  void SetUp() override {
    static const CompileRequest request = lean_request("");  // the table borrows its texts
    ASSERT_TRUE(sources_
                    .add({{request.source_name, request.source},
                          {request.headers[0].first, request.headers[0].second}})
                    .ok());
    const auto store = cache::make_store({.disk_dir = folder_.path() + "/cache"});
    const auto built = Engine(sources_, *store).build(*nvrtc_, lean_program(), "sm_90");
    ASSERT_TRUE(built.ok()) << built.status();
    made_ = built->artifact;
    const std::string bytes = *cache::make_pack({.artifacts = {made_}});
    std::ofstream(pack_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ::chmod(pack_.c_str(), 0644);
  }

  ScratchFolder folder_;
  const std::string pack_ = folder_.path() + "/a.kpack";
  Sources sources_;
  const std::unique_ptr<Compiler> nvrtc_ = make_nvrtc_compiler();
  const std::unique_ptr<Compiler> missing_ =
      make_nvrtc_compiler({.library = "/nowhere/libnvrtc.so"});
  std::shared_ptr<const cache::Artifact> made_;
};

TEST_F(EngineBySourceTest, WithoutACompilerThePackServes) {
  const auto store = cache::make_store({.layers = {pack_}});
  Engine engine(sources_, *store);
  for (const Policy policy : {Policy::block, Policy::forbid}) {
    const auto built = engine.build(*missing_, lean_program(), "sm_90", {.policy = policy});
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_TRUE(built->artifact->image == made_->image);
    EXPECT_EQ(built->kernels.at(0).name, "lean");
  }
  EXPECT_EQ(store->stats().layer_hits, 2);
  EXPECT_EQ(engine.stats().compilations, 0);
}

TEST_F(EngineBySourceTest, AnotherSourceConstantOrTargetIsStillMissing) {
  const auto store = cache::make_store({.layers = {pack_}});
  Engine engine(sources_, *store);
  const auto other =
      engine.build(*missing_, lean_program(2.5), "sm_90", {.policy = Policy::forbid});
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_TRUE(contains(other.status(), "compiling is forbidden"));
  EXPECT_FALSE(engine.build(*missing_, lean_program(), "sm_90a", {.policy = Policy::forbid}).ok());
  const auto missing = engine.build(*missing_, lean_program(2.5), "sm_90");
  EXPECT_EQ(missing.status(), missing_->id().status()) << "says what to install";
}

// The same source, made by a compiler of another build.
TEST_F(EngineBySourceTest, AnyCompilerIsTakenWhenAskedForOrForbidden) {
  cache::Artifact old = *made_;
  old.compiler_fields = {{"name", "nvrtc"}, {"build", "12.8.93"}, {"headers", "12080"}};
  old.key.compiler = cache::hash_fields(old.compiler_fields);
  const auto store = cache::make_store({});
  ASSERT_TRUE(store->put(std::make_shared<const cache::Artifact>(old)).ok());
  Engine engine(sources_, *store);
  const auto any = engine.build(*nvrtc_, lean_program(), "sm_90", {.any_compiler = true});
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_TRUE(any->artifact->key == old.key);
  EXPECT_TRUE(engine.build(*nvrtc_, lean_program(), "sm_90", {.policy = Policy::forbid}).ok());
  EXPECT_EQ(engine.stats().compilations, 0);
  const auto exact = engine.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(exact.ok());
  EXPECT_TRUE(exact->artifact->key == made_->key);
  EXPECT_EQ(engine.stats().compilations, 1);
}

}  // namespace
}  // namespace kiln::jit
