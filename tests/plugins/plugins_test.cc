// Plugins are loaded once, all or nothing, and a bad one costs a warning.
#include <kiln/kiln.h>
#include <kiln/log.h>
#include <kiln/ops/layer_norm.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum absl::StatusCode;

std::string plugin(const std::string& name) { return std::string(PLUGIN_DIR) + "/" + name + ".so"; }

RuntimeOptions opening(std::vector<std::string> path) {
  RuntimeOptions options;
  options.load_installed_backends = false;
  options.backend_path = std::move(path);
  return options;
}

std::vector<std::string> keys(Runtime& runtime) {
  std::vector<std::string> keys;
  for (const KernelRow& row : runtime.kernel_rows("LayerNormFwdOp")) {
    if (row.origin != "in-tree") keys.push_back(row.key);
  }
  return keys;
}

absl::StatusOr<std::unique_ptr<LayerNormFwdOp>> make_op(Runtime& runtime, std::string target = "") {
  return LayerNormFwdOp::create({.normalized_shape = {4}},
                                {.runtime = &runtime, .target = std::move(target)});
}

int fills_of_good() {
  void* handle = dlopen(plugin("good").c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  const auto* fills = static_cast<const std::atomic<int>*>(dlsym(handle, "good_plugin_fills"));
  const int count = fills == nullptr ? -1 : fills->load();
  dlclose(handle);
  return count;
}

// One runtime that opens one bad plugin between two looks at what it knows.
class PluginsTest : public ::testing::Test {
 protected:
  ~PluginsTest() override { set_log_sink({}); }

  // Opens `file` beside the good plugin; returns why it was skipped.
  std::string skipped(const std::string& file) {
    std::vector<std::string> warnings;
    std::mutex mutex;
    set_log_sink([&](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex);
      if (level >= LogLevel::warning) warnings.emplace_back(line);
    });
    Runtime runtime(opening({plugin("good"), file}));
    EXPECT_THAT(make_op(runtime), is_ok()) << "a bad plugin costs nobody else anything";
    set_log_sink({});
    EXPECT_THAT(keys(runtime), ElementsAre("host_layer_norm"))
        << "nothing of a failed plugin is kept";
    EXPECT_THAT(runtime.registered_targets(), ElementsAre("good"));
    const std::vector<LoadFailure> failures = runtime.load_failures();
    if (failures.size() != 1) return "there are " + std::to_string(failures.size()) + " failures";
    EXPECT_EQ(failures[0].file, file);
    EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr(file), HasSubstr("is skipped"),
                                            HasSubstr(failures[0].reason))));
    return failures[0].reason;
  }
};

TEST_F(PluginsTest, AGoodPluginAddsItsImplementationAndItsTarget) {
  Runtime runtime(opening({plugin("good")}));
  EXPECT_THAT(keys(runtime), IsEmpty()) << "opened with the first op, not before";
  auto op = make_op(runtime, "good");
  ASSERT_THAT(op, is_ok());
  EXPECT_THAT(keys(runtime), ElementsAre("host_layer_norm"));
  EXPECT_THAT(runtime.registered_targets(), ElementsAre("good"));
  EXPECT_THAT(runtime.load_failures(), IsEmpty());
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const Device cpu{DeviceType::cpu(), 0};
  ASSERT_THAT(
      (*op)->forward({cpu, nullptr}, Tensor::contiguous(x.data(), cpu, DType::float32, {1, 4}),
                     nullptr, nullptr, Tensor::contiguous(y.data(), cpu, DType::float32, {1, 4})),
      is_ok());
  EXPECT_EQ((*op)->serving_target(), "good");
  EXPECT_NEAR(y[3], 1.3416, 1e-3);
  auto in_tree = make_op(runtime);
  const LayerNormCall call{.n = 4, .dtype = DType::float32, .where = {cpu, 90}};
  EXPECT_EQ(*(*in_tree)->key_for<LayerNormFwdInterface>(call), "host_layer_norm");
}

TEST_F(PluginsTest, SixteenThreadsThatMakeOpsAtOnceLoadEachPluginOnce) {
  const int before = fills_of_good();
  Runtime runtime(opening({plugin("good"), plugin("half")}));
  std::vector<std::thread> threads;
  std::atomic<int> seen{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      if (make_op(runtime).ok() && keys(runtime).size() == 1) ++seen;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, 16) << "no op is constructed before the plugins are there";
  EXPECT_EQ(fills_of_good(), before + 1);
  EXPECT_THAT(runtime.load_failures(), SizeIs(1));
}

TEST_F(PluginsTest, AFolderIsReadByNameAndAFileFoundTwiceIsOpenedOnce) {
  TempDir folder;
  std::filesystem::create_symlink(plugin("good"), folder / "b.so");
  std::filesystem::create_symlink(plugin("half"), folder / "a.so");
  write_file(folder / "notes.txt", "not a plugin, and not opened");
  const int before = fills_of_good();
  Runtime runtime(opening({folder.path(), plugin("good")}));
  runtime.load_backends();
  EXPECT_EQ(fills_of_good(), before + 1);
  EXPECT_THAT(runtime.load_failures(), ElementsAre(Field(&LoadFailure::file, plugin("half"))));
  EXPECT_THAT(keys(runtime), ElementsAre("host_layer_norm"));
}

TEST_F(PluginsTest, AThrowingPlugin) {
  EXPECT_THAT(skipped(plugin("throwing")), HasSubstr("the bus is on fire"));
}
TEST_F(PluginsTest, AnExceptionThatLeavesThePluginsFunction) {
  EXPECT_THAT(skipped(plugin("escaping")), HasSubstr("nobody caught this"));
}
TEST_F(PluginsTest, AHalfRegisteredPlugin) {
  EXPECT_THAT(skipped(plugin("half")), HasSubstr("the other half is not installed"));
}
TEST_F(PluginsTest, ASharedObjectWithoutTheFunction) {
  EXPECT_THAT(skipped(NO_FUNCTION_PLUGIN),
              AllOf(HasSubstr("kiln_plugin"), HasSubstr("KILN_PLUGIN")));
}
TEST_F(PluginsTest, AnUndefinedSymbol) {
  EXPECT_THAT(
      skipped(plugin("undefined_symbol")),
      AllOf(HasSubstr("cannot be opened"), HasSubstr("kiln_test_function_that_is_nowhere")));
}
TEST_F(PluginsTest, AMissingLibrary) {
  EXPECT_THAT(skipped(plugin("missing_library")),
              AllOf(HasSubstr("cannot be opened"), HasSubstr("absent_library.so")));
}
TEST_F(PluginsTest, AFileThatIsNoSharedObjectAndOneThatIsNotThere) {
  TempDir folder;
  write_file(folder / "text.so", "this is a letter to the loader");
  EXPECT_THAT(skipped(std::filesystem::canonical(folder / "text.so")),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(skipped("/nowhere/acme.so"),
              AllOf(HasSubstr("cannot be opened"), HasSubstr("No such file")));
}
TEST_F(PluginsTest, AnotherAbi) {
  EXPECT_THAT(skipped(plugin("other_abi")),
              AllOf(HasSubstr("another ABI"), HasSubstr("kiln 0.0, c++ abi 1002, absl lts_1999"),
                    HasSubstr("want")));
}
TEST_F(PluginsTest, AnOlderPluginInfo) {
  EXPECT_THAT(skipped(plugin("older_info")),
              AllOf(HasSubstr("older or damaged PluginInfo"), HasSubstr("got 24")));
  EXPECT_THAT(skipped(plugin("null_info")), HasSubstr("older or damaged PluginInfo"));
}
TEST_F(PluginsTest, AKeyThatAnotherPluginHasNamesTheOther) {
  EXPECT_THAT(skipped(plugin("clash")),
              AllOf(HasSubstr("BackendError"), HasSubstr("host_layer_norm"),
                    HasSubstr("from " + plugin("good"))));
}
TEST_F(PluginsTest, WhatAStaticConstructorRegisteredIsDroppedWithTheRest) {
  EXPECT_THAT(skipped(plugin("registers_early")),
              HasSubstr("failed after its constructor registered"));
  EXPECT_THAT(Runtime::instance().registered_targets(), Not(Contains("constructor")));
}

TEST_F(PluginsTest, APluginThatMakesAnOpDoesNotWaitForItself) {
  Runtime runtime(opening({plugin("op_maker")}));
  runtime.load_backends();
  EXPECT_THAT(runtime.load_failures(), IsEmpty());
  EXPECT_THAT(runtime.registered_targets(), ElementsAre("op_maker"));
}

TEST_F(PluginsTest, AStaleContractFailsConstructionNamingTheFileAndCanBeDisabled) {
  Runtime runtime(opening({plugin("stale_contract")}));
  EXPECT_THAT(make_op(runtime),
              status_is(kInvalidArgument,
                        AllOf(HasSubstr("forward does not take LayerNormFwdInterface's arguments"),
                              HasSubstr("stale_layer_norm"), HasSubstr(plugin("stale_contract")))));
  for (const std::string& name : {std::string("stale"), std::string("stale_contract"),
                                  std::string("stale_contract.so"), plugin("stale_contract")}) {
    RuntimeOptions options = opening({plugin("stale_contract")});
    options.disabled_backends = {name};
    Runtime without(options);
    EXPECT_THAT(make_op(without), is_ok()) << name;
    EXPECT_THAT(without.load_failures(), IsEmpty()) << "left out is not failed";
  }
  for (const char* name : {"stal", "plugins", "contract.s", ""}) {
    RuntimeOptions options = opening({plugin("stale_contract")});
    options.disabled_backends = {name};
    Runtime with(options);
    EXPECT_THAT(make_op(with), Not(is_ok())) << name << " is not a word of the file's name";
  }
}

TEST_F(PluginsTest, AnEdgeReadsTheEnvironmentIntoTheOptions) {
  setenv("KILN_BACKEND_PATH", "/opt/a:/opt/b.so", 1);
  setenv("KILN_DISABLE_BACKENDS", "acme,/opt/c.so", 1);
  const RuntimeOptions options = RuntimeOptions::from_environment();
  unsetenv("KILN_BACKEND_PATH");
  unsetenv("KILN_DISABLE_BACKENDS");
  EXPECT_THAT(options.backend_path, ElementsAre("/opt/a", "/opt/b.so"));
  EXPECT_THAT(options.disabled_backends, ElementsAre("acme", "/opt/c.so"));
}

}  // namespace
}  // namespace kiln::testing
