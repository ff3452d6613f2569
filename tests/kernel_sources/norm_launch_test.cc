// What is launched: grids, blocks, shared memory and parameters, without a device.
#include <kiln/ops/ada_layer_norm.h>
#include <kiln/ops/ada_layer_norm_zero.h>
#include <kiln/ops/batch_norm.h>
#include <kiln/ops/fused_add_layer_norm.h>
#include <kiln/ops/fused_add_rms_norm.h>
#include <kiln/ops/layer_norm.h>
#include <kiln/ops/rms_norm.h>

#include "tests/kernel_sources/norm_fixture.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using enum absl::StatusCode;

// Keeps the shape of the last launch and its parameters of 8 bytes.
class RecordingSupport : public ToySupport {
 public:
  RecordingSupport() : ToySupport({}) {}
  absl::Status launch(void*, const Stream&, const LaunchShape& shape, void** args) override {
    ++launches;
    last = shape;
    words.clear();
    for (; *args != nullptr; ++args) words.push_back(*static_cast<std::uint64_t*>(*args));
    return absl::OkStatus();
  }
  int launches = 0;
  LaunchShape last;
  std::vector<std::uint64_t> words;
};

class NormLaunchTest : public ::testing::Test {
 protected:
  // Lets `kernel` launch on the recording device, as if `config` were loaded on one of `facts`.
  void load(Kernel& kernel, const Config& config, const DeviceFacts& facts) {
    auto loaded = std::make_unique<Loaded>();
    loaded->config = config;
    loaded->functions = {nullptr, nullptr};
    loaded->facts = facts;
    loaded->support = &support_;
    kernel.publish(0, std::move(loaded));
  }
  // Makes `key` for a call and lets it launch on the recording device, as an H200 with its default
  // configuration.
  template <class I>
  const I& make(const NormForm& form, const std::string& key, std::int64_t n) {
    const auto op = make_norm(runtime_, form.op);
    const LayerNormCall call{
        .n = n, .dtype = DType::bfloat16, .has_weight = form.has_weight, .has_bias = form.has_bias};
    kernel_ = op->entry_plan(interface_of(runtime_, form.op), key, call)->build();
    const DeviceFacts facts = *reference_facts(90);
    load(*kernel_, kernel_->default_config(facts), facts);
    return dynamic_cast<const I&>(*kernel_);
  }
  // Launches LayerNorm by `key` on `rows` rows of n elements.
  absl::Status launch(const std::string& key, std::int64_t n, std::int64_t rows) {
    return make<LayerNormFwdInterface>(kForms[0], key, n)
        .forward(Stream{}, rows_at(1, rows, n, n), factor_at(2, n), factor_at(3, n),
                 rows_at(4, rows, n, n), fake(kWorkspace));
  }
  static constexpr std::uintptr_t kWorkspace = 64;
  // Trains batch norm of float16 by `kernel` as if `config` were loaded on such a device.
  absl::Status train(Kernel& kernel, const Dims& shape, const Config& config,
                     const DeviceFacts& facts) {
    load(kernel, config, facts);
    const Tensor x{
        fake(64), {}, DType::float16, shape, {shape[1] * shape[2], shape[2], std::int64_t{1}}};
    return dynamic_cast<const BatchNormTrainFwdInterface&>(kernel).forward(
        Stream{}, x, {}, {}, {}, {}, x, {}, {}, fake(128));
  }
  static Tensor rows_at(std::uintptr_t address, std::int64_t rows, std::int64_t n,
                        std::int64_t stride) {
    return {fake(address), {}, DType::bfloat16, {rows, n}, {stride, 1}};
  }
  static Tensor factor_at(std::uintptr_t address, std::int64_t n) {
    return {fake(address), {}, DType::bfloat16, {n}, {1}};
  }
  static void* fake(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never read
  }
  std::uint32_t grid() const { return support_.last.grid[0]; }
  std::uint32_t block() const { return support_.last.block[0]; }

  Runtime runtime_{in_tree_options()};
  RecordingSupport support_;
  std::unique_ptr<Kernel> kernel_;
};

// Against the .cu files: rows that are read, weight, bias, what is written, the number of rows, the
// strides.
TEST_F(NormLaunchTest, ParametersAreInTheOrderOfTheKernel) {
  using ::testing::ElementsAre;
  const std::int64_t n = 4096;
  const auto rows = [](std::uintptr_t at, std::int64_t stride) {
    return rows_at(at, 7, 4096, stride);
  };
  const Stream stream{};
  EXPECT_THAT(
      make<LayerNormFwdInterface>(kForms[0], "layer_norm", n)
          .forward(stream, rows(1, 5000), factor_at(2, n), factor_at(3, n), rows(4, n), nullptr),
      is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 4, 7, 5000));
  EXPECT_THAT(make<RMSNormFwdInterface>(kForms[1], "rms_norm_stream", n)
                  .forward(stream, rows(1, 5000), factor_at(2, n), rows(3, n), nullptr),
              is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 7, 5000));
  EXPECT_THAT(make<FusedAddLayerNormFwdInterface>(kForms[2], "fused_add_layer_norm", n)
                  .forward(stream, rows(1, 5000), rows(2, 5001), factor_at(3, n), factor_at(4, n),
                           rows(5, n), rows(6, n)),
              is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 4, 5, 6, 7, 5000, 5001));
  EXPECT_THAT(
      make<FusedAddRMSNormFwdInterface>(kForms[3], "fused_add_rms_norm", n)
          .forward(stream, rows(1, 5000), rows(2, 5001), factor_at(3, n), rows(4, n), rows(5, n)),
      is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 4, 5, 7, 5000, 5001));
  EXPECT_THAT(make<AdaLayerNormFwdInterface>(kForms[4], "ada_layer_norm", n)
                  .forward(stream, rows(1, 5000), rows(2, 0), rows(3, 5002), rows(4, n)),
              is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 4, 7, 5000, 0, 5002));
  EXPECT_THAT(
      make<AdaLayerNormZeroFwdInterface>(kForms[5], "ada_layer_norm_zero", n)
          .forward(stream, rows(1, 5000), rows(2, 0), rows(3, 5002), rows(4, 5003), rows(5, n)),
      is_ok());
  EXPECT_THAT(support_.words, ElementsAre(1, 2, 3, 4, 5, 7, 5000, 0, 5002, 5003));
}

TEST_F(NormLaunchTest, NoRowsLaunchNothing) {
  for (const char* key : {"layer_norm", "layer_norm_warp", "layer_norm_stream"}) {
    EXPECT_THAT(launch(key, 512, 0), is_ok());
  }
  EXPECT_EQ(support_.launches, 0);
}

TEST_F(NormLaunchTest, AWarpsTeamsShareABlock) {
  ASSERT_THAT(launch("layer_norm_warp", 128, 33),
              is_ok());  // 16 accesses: 8 lanes, 16 rows a block
  EXPECT_EQ(block(), 128u);
  EXPECT_EQ(grid(), 3u);
  // 16 lanes, 4 rows each: 16 rows a block.
  ASSERT_THAT(make<RMSNormFwdInterface>(kForms[1], "rms_norm_warp", 128)
                  .forward(Stream{}, rows_at(1, 33, 128, 128), factor_at(2, 128),
                           rows_at(3, 33, 128, 128), nullptr),
              is_ok());
  EXPECT_EQ(block(), 64u);
  EXPECT_EQ(grid(), 3u);
}

TEST_F(NormLaunchTest, ABlockTakesTwoRowsOnceTheDeviceIsFull) {
  ASSERT_THAT(launch("layer_norm", 4096, 2048),
              is_ok());  // 512 accesses: 128 threads, 8 blocks a multiprocessor
  EXPECT_EQ(block(), 128u);
  EXPECT_EQ(support_.last.smem_bytes, 2u * 4096 * 2);  // weight and bias
  EXPECT_EQ(grid(), 1056u);
  ASSERT_THAT(launch("layer_norm", 4096, 100000), is_ok());
  EXPECT_EQ(grid(), 50000u);
  ASSERT_THAT(launch("layer_norm", 4096, 3), is_ok());
  EXPECT_EQ(grid(), 3u);
}

// LOAD_HINT 3, kiln::Hint::hold: where it was measured.
TEST_F(NormLaunchTest, WhatIsReadOnceIsHeldInTheL2OfAnH200) {
  const auto hint = [&](const std::string& key, std::int64_t n, int align, int arch) {
    const auto op = make_norm(runtime_, "LayerNormFwdOp");
    const LayerNormCall call{.n = n, .dtype = DType::bfloat16, .align = align};
    return op->entry_plan(interface_of(runtime_, "LayerNormFwdOp"), key, call)
        ->build()
        ->default_config(*reference_facts(arch))["load_hint"];
  };
  EXPECT_EQ(hint("layer_norm", 4096, 16, 90), 3);
  EXPECT_EQ(hint("layer_norm", 4096, 16, 100), 0);
  EXPECT_EQ(hint("layer_norm", 4096, 4, 90), 0);          // accesses of 4 bytes
  EXPECT_EQ(hint("layer_norm", 1152, 16, 90), 1);         // calls of such rows are small
  EXPECT_EQ(hint("layer_norm", 3200, 16, 90), 0);         // 400 accesses, 128 threads
  EXPECT_EQ(hint("layer_norm_stream", 4096, 16, 90), 0);  // read twice
  EXPECT_EQ(hint("layer_norm_queue", 131072, 16, 90), 3);
  EXPECT_EQ(hint("layer_norm_queue", 262144, 16, 90), 3);
  EXPECT_EQ(hint("layer_norm_queue", 262144, 16, 100), 0);
  EXPECT_EQ(hint("layer_norm_spread", 1 << 20, 16, 90), 3);
  EXPECT_EQ(hint("layer_norm_spread", 1 << 20, 16, 100), 0);
}

TEST_F(NormLaunchTest, ClustersAreWhole) {
  // The block's 512 threads, between 8; each has weight and bias for its 4 accesses.
  ASSERT_THAT(launch("layer_norm_cluster", 16384, 5), is_ok());
  EXPECT_EQ(grid(), 8u * 5);
  EXPECT_EQ(block(), 64u);
  EXPECT_EQ(support_.last.smem_bytes, 2u * 4 * 64 * 16);
  ASSERT_THAT(launch("layer_norm_cluster_stream", 1 << 20, 5), is_ok());
  EXPECT_EQ(grid(), 16u * 5);
  EXPECT_EQ(support_.last.smem_bytes, 0u);
}

TEST_F(NormLaunchTest, ClustersThatTakeSeveralRowsTakeThemFromAQueue) {
  const std::uint64_t none = 0;
  ASSERT_THAT(launch("layer_norm_queue", 65536, 66), is_ok());
  EXPECT_EQ(support_.launches, 1);
  EXPECT_EQ(grid(), 2u * 66);
  EXPECT_EQ(block(), 512u);
  EXPECT_EQ(support_.last.smem_bytes, 3u * 65536);  // half of a row, of weight and of bias
  EXPECT_THAT(support_.words, ::testing::ElementsAre(1, 2, 3, 4, 66, 65536, none));
  ASSERT_THAT(launch("layer_norm_queue", 65536, 67), is_ok());
  EXPECT_EQ(support_.launches, 3);  // the queue is made empty before
  EXPECT_EQ(grid(), 2u * 66);
  EXPECT_THAT(support_.words, ::testing::ElementsAre(1, 2, 3, 4, 67, 65536, kWorkspace));
  ASSERT_THAT(launch("layer_norm_queue", 65536, 0), is_ok());
  EXPECT_EQ(support_.launches, 3);
}

// Each configuration fits the block's shared memory.
TEST_F(NormLaunchTest, LongRowsFitTheirBlocks) {
  for (const int arch : {90, 100}) {
    const DeviceFacts facts = *reference_facts(arch);
    for (const std::int64_t n : {16392, 32768, 65536, 100008, 524288}) {
      make<LayerNormFwdInterface>(kForms[0], "layer_norm_queue", n);
      for (const Config& config : kernel_->autotune_configs(facts)) {
        const std::int64_t items = (n / 8 + config["cluster"] * config["threads"] - 1) /
                                   (config["cluster"] * config["threads"]);
        EXPECT_LE(items, 16) << n << to_string(config);
        const std::int64_t smem = kernel_->programs(facts, config)[0].smem_bytes;
        EXPECT_EQ(smem, 3 * items * config["threads"] * 16);
        EXPECT_LE((smem + 2048) * config["blocks_per_sm"], facts.smem_budget)
            << n << to_string(config);
      }
    }
  }
}

TEST_F(NormLaunchTest, TheLongestRowsAreSpreadOverBlocksThatRunAtOnce) {
  ASSERT_THAT(launch("layer_norm_spread", 1 << 20, 5), is_ok());
  EXPECT_EQ(support_.launches, 2);  // the moments are made empty before
  EXPECT_EQ(grid(), 128u);          // slices of 1024 accesses
  EXPECT_EQ(block(), 2u * 256 + 5 * 32);
  EXPECT_TRUE(support_.last.cooperative);
  EXPECT_THAT(support_.words, ::testing::ElementsAre(1, 2, 3, 4, 5, 1 << 20, kWorkspace));
  ASSERT_THAT(launch("layer_norm_spread", 1 << 20, 0), is_ok());
  EXPECT_EQ(support_.launches, 2);
}

// Each configuration has a multiprocessor for each slice, and room for what a block holds; moments
// fit the workspace.
TEST_F(NormLaunchTest, SpreadRowsFitTheirBlocks) {
  const auto op = make_norm(runtime_, "LayerNormFwdOp");
  for (const int arch : {90, 100}) {
    for (const int sm_count : {132, 148, 114, 78}) {
      DeviceFacts facts = *reference_facts(arch);
      facts.sm_count = sm_count;
      for (const std::int64_t bytes : {(1 << 20) + 16, 1200016, 1 << 21, 1 << 22}) {
        for (const int factors : {0, 1, 2}) {
          for (const DType dtype : {DType::bfloat16, DType::float32}) {
            const LayerNormCall call{.n = bytes / size_of(dtype),
                                     .dtype = dtype,
                                     .has_weight = factors > 0,
                                     .has_bias = factors > 1};
            const auto plan =
                op->entry_plan(interface_of(runtime_, "LayerNormFwdOp"), "layer_norm_spread", call);
            ASSERT_THAT(plan, is_ok());
            const std::unique_ptr<Kernel> kernel = plan->build();
            for (const Config& config : kernel->autotune_configs(facts)) {
              if (config["slots"] == 0) continue;  // the cluster stream's
              SCOPED_TRACE(to_string(config));
              const std::int64_t slices = (bytes / 16 + config["part"] - 1) / config["part"];
              EXPECT_LE(slices, sm_count);
              EXPECT_GE(config["slots"], 4);
              EXPECT_LE(static_cast<std::size_t>(2 * config["slots"] * slices * 16),
                        LayerNormFwdInterface::workspace_bytes(call));
              const std::int64_t smem = kernel->programs(facts, config)[0].smem_bytes;
              EXPECT_EQ(smem, (config["slots"] + factors) * config["part"] * 16);
              EXPECT_LE(smem + config["slots"] * (config["threads"] / 2 + 56), facts.smem_budget);
            }
          }
        }
      }
    }
  }
}

// A part of a device has too little shared memory for the rings, and a configuration of a larger
// one would wait for blocks that never run.
TEST_F(NormLaunchTest, SpreadRowsOnFewMultiprocessorsAreReadTwice) {
  DeviceFacts small = *reference_facts(90);
  small.sm_count = 16;
  make<LayerNormFwdInterface>(kForms[0], "layer_norm_spread", 1 << 20);
  const Config config = kernel_->default_config(small);
  EXPECT_EQ(config["slots"], 0);
  EXPECT_THAT(kernel_->programs(small, config)[0].kernels,
              ::testing::ElementsAre("layer_norm_cluster_stream"));
  EXPECT_EQ(kernel_->autotune_configs(small)[0], config);
  load(*kernel_, kernel_->default_config(*reference_facts(90)), small);
  EXPECT_THAT(dynamic_cast<const LayerNormFwdInterface&>(*kernel_).forward(
                  Stream{}, rows_at(1, 5, 1 << 20, 1 << 20), factor_at(2, 1 << 20),
                  factor_at(3, 1 << 20), rows_at(4, 5, 1 << 20, 1 << 20), fake(kWorkspace)),
              status_is(kFailedPrecondition, HasSubstr("got 128 slices for 16 multiprocessors")));
  EXPECT_EQ(support_.launches, 0);
}

TEST_F(NormLaunchTest, MoreBlocksThanAGridHoldsAreRefused) {
  const std::int64_t most = 2147483647;
  EXPECT_THAT(launch("layer_norm_stream", 1, most), is_ok());
  EXPECT_EQ(grid(), 2147483647u);
  EXPECT_THAT(launch("layer_norm_stream", 1, most + 1),
              status_is(kInvalidArgument, HasSubstr("got 2147483648 rows")));
  EXPECT_THAT(launch("layer_norm_cluster_stream", 1 << 20, most / 16), is_ok());
  EXPECT_THAT(launch("layer_norm_cluster_stream", 1 << 20, most / 16 + 1),
              status_is(kInvalidArgument, HasSubstr("at most 2147483647 blocks")));
  EXPECT_THAT(launch("layer_norm_warp", 1, most * 128), is_ok());
  EXPECT_THAT(launch("layer_norm_warp", 1, most * 128 + 1), status_is(kInvalidArgument));
  EXPECT_EQ(support_.launches, 3);
}

// A configuration of a larger board.
TEST_F(NormLaunchTest, BlocksThatCannotHoldASetAreRefused) {
  const auto op = BatchNormFwdOp::create({.training = true}, {.runtime = &runtime_});
  ASSERT_THAT(op, is_ok());
  const auto plan = (*op)->entry_plan(
      "batch_norm_fwd_train", "fwd_train_split",
      BatchNormCall{.batch = 4, .channels = 128, .spatial = 1048576, .dtype = DType::float16});
  ASSERT_THAT(plan, is_ok());
  const std::unique_ptr<Kernel> kernel = plan->build();
  DeviceFacts facts = *reference_facts(90);
  const Config config = kernel->default_config(facts);
  facts.sm_count = 8;
  EXPECT_THAT(train(*kernel, {4, 128, 1048576}, config, facts),
              status_is(kFailedPrecondition, HasSubstr("a slot for each part of a set")));
  EXPECT_EQ(support_.launches, 0);
}

// Blocks that hold sets together wait for each other, so none may wait for room: one a
// multiprocessor, and the driver is told.
TEST_F(NormLaunchTest, BlocksThatHoldSetsTogetherRunAtOnce) {
  const auto op = BatchNormFwdOp::create({.training = true}, {.runtime = &runtime_});
  ASSERT_THAT(op, is_ok());
  for (const int arch : {90, 100}) {
    const DeviceFacts facts = *reference_facts(arch);
    for (const auto& [batch, channels, spatial] :
         std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
             {1, 1, 65544}, {1, 3, 65544}, {64, 256, 3136}, {4, 128, 1048576}, {4, 1023, 262144}}) {
      const Dims shape{batch, channels, spatial};
      const BatchNormCall call{
          .batch = batch, .channels = channels, .spatial = spatial, .dtype = DType::float16};
      const auto plan = (*op)->entry_plan("batch_norm_fwd_train", "fwd_train_split", call);
      ASSERT_THAT(plan, is_ok());
      int held = 0;
      const std::unique_ptr<Kernel> kernel = plan->build();
      EXPECT_GT(kernel->default_config(facts)["slots"], 0);
      EXPECT_EQ(kernel->default_config(facts)["load_hint"], arch == 90 ? 3 : 0);
      for (const Config& config : kernel->autotune_configs(facts)) {
        if (config["slots"] == 0) continue;
        ++held;
        const Program program = kernel->programs(facts, config).at(0);
        ASSERT_THAT(train(*kernel, shape, config, facts), is_ok());
        EXPECT_TRUE(support_.last.cooperative);
        EXPECT_LE(grid(), static_cast<std::uint32_t>(facts.sm_count));
        EXPECT_GT(grid(), 0u);
        EXPECT_LE(block(), 1024u);
        EXPECT_EQ(support_.last.smem_bytes, program.smem_bytes);
        // Moments of each warp, a result and barriers lie beside a slot.
        const std::int64_t beside = config["slots"] * (config["threads"] / 2 + 80);
        EXPECT_LE(support_.last.smem_bytes + beside, facts.smem_budget);
        // The rings of all blocks hold a set, or nobody could ever be done with it.
        const std::int64_t part = config["threads"] * config["items"];
        const std::int64_t parts = (batch * spatial / 8 + part - 1) / part;
        EXPECT_GE(config["slots"] * grid(), std::min(2 * parts, channels * parts));
      }
      EXPECT_GT(held, 0);
    }
  }
}

}  // namespace
}  // namespace kiln::testing
