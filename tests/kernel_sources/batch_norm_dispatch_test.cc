// Batch, instance and group norm: which implementation serves which call, on each side of every
// limit; what the ops refuse; what their binaries depend on; that each compiles for every arch.
#include <kiln/ops/batch_norm.h>
#include <kiln/ops/group_norm.h>
#include <kiln/ops/instance_norm.h>

#include "runtime/tools.h"
#include "tests/kernel_sources/norm_fixture.h"

#include <gmock/gmock.h>

#include <set>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using enum absl::StatusCode;

BatchNormCall channels(std::int64_t batch, std::int64_t channels, std::int64_t spatial,
                       DType dtype = DType::float16, int align = 16, int arch = 90) {
  return {.batch = batch,
          .channels = channels,
          .spatial = spatial,
          .dtype = dtype,
          .align = align,
          .where = stated(arch, 132)};
}

ArgSpec arg(DType dtype, const Dims& shape) { return contiguous_arg({Device{}, dtype, shape}); }

class BatchNormDispatchTest : public ::testing::Test {
 protected:
  template <class OpT>
  std::unique_ptr<OpT> make(const typename OpT::Params& params) {
    auto op = OpT::create(params, {.runtime = &runtime_});
    EXPECT_THAT(op, is_ok());
    return *std::move(op);
  }
  template <class I, class OpT, class Call>
  static std::string key(const OpT& op, const Call& call) {
    const absl::StatusOr<std::string> key = op.template key_for<I>(call);
    return key.ok() ? *key : std::string(key.status().message());
  }

  Runtime runtime_{in_tree_options()};
  std::unique_ptr<BatchNormFwdOp> train_ = make<BatchNormFwdOp>({.training = true});
  std::unique_ptr<BatchNormFwdOp> eval_ = make<BatchNormFwdOp>({});
  std::unique_ptr<InstanceNormFwdOp> instance_ = make<InstanceNormFwdOp>({});
  std::unique_ptr<GroupNormFwdOp> group_ = make<GroupNormFwdOp>({.num_groups = 2});
};

TEST_F(BatchNormDispatchTest, TrainingIsChosenByTheSizeOfAChannel) {
  for (const int arch : kArchs) {
    for (const auto& [b, c, s, dtype, want] :
         std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, DType, const char*>>{
             {2, 64, 1, DType::float16, "fwd_train_whole"},
             {32, 64, 1, DType::float16, "fwd_train_whole"},
             {33, 64, 1, DType::float16, "fwd_train_wide"},
             {32, 64, 2, DType::float16, "fwd_train_wide"},
             {8192, 3, 1, DType::float16, "fwd_train_wide"},
             {8193, 3, 1, DType::float16, "fwd_train_kernel"},
             {1, 4, 65528, DType::float16, "fwd_train_wide"},
             {1, 4, 65536, DType::float16, "fwd_train_wide"},
             {1, 4, 65544, DType::float16, "fwd_train_split"},
             {1, 4, 65537, DType::bfloat16, "fwd_train_split"},
             {1, 4, 65535, DType::bfloat16, "fwd_train_kernel"},
             {1, 4, 32768, DType::float32, "fwd_train_wide"},
             {1, 4, 32772, DType::float32, "fwd_train_kernel"},
             {1, 4, 65536, DType::float32, "fwd_train_split"},
             {1, 1023, 65544, DType::float16, "fwd_train_split"},
             {1, 1024, 65544, DType::float16, "fwd_train_kernel"},
             {1, 1024, 65536, DType::float16, "fwd_train_wide"}}) {
      EXPECT_EQ(key<BatchNormTrainFwdInterface>(*train_, channels(b, c, s, dtype, 16, arch)), want)
          << b << "x" << c << "x" << s << " on " << arch;
    }
  }
}

TEST_F(BatchNormDispatchTest, NarrowAccessesLeaveTheRegistersEarlier) {
  EXPECT_EQ(key<BatchNormTrainFwdInterface>(*train_, channels(64, 4, 128, DType::float16, 2)),
            "fwd_train_wide");  // 8192 accesses
  EXPECT_EQ(key<BatchNormTrainFwdInterface>(*train_, channels(65, 4, 128, DType::float16, 2)),
            "fwd_train_kernel");
  EXPECT_EQ(key<BatchNormTrainFwdInterface>(*train_, channels(65, 4, 128, DType::float16, 4)),
            "fwd_train_wide");
  EXPECT_EQ(key<BatchNormTrainFwdInterface>(*train_, channels(65, 4, 129)), "fwd_train_kernel");
}

TEST_F(BatchNormDispatchTest, InferenceHasOneImplementationForAll) {
  for (const std::int64_t spatial : {1, 49, 784, 1048576}) {
    EXPECT_EQ(key<BatchNormInferFwdInterface>(*eval_, channels(70000, 64, spatial)),
              "fwd_infer_kernel");
    EXPECT_EQ(key<InstanceNormInferFwdInterface>(*instance_, channels(70000, 64, spatial)),
              "instance_norm_infer");
  }
}

TEST_F(BatchNormDispatchTest, InstanceAndGroupNormAreChosenByTheSizeOfTheirSets) {
  const auto instance = [&](const BatchNormCall& call) {
    return key<InstanceNormTrainFwdInterface>(*instance_, call);
  };
  const auto tracking = [&](BatchNormCall call) {
    call.tracks = true;
    return key<InstanceNormTrainFwdInterface>(*instance_, call);
  };
  EXPECT_EQ(tracking(channels(8, 128, 1024)), "instance_norm_channel");
  EXPECT_EQ(tracking(channels(32, 128, 1024)), "instance_norm_channel");
  EXPECT_EQ(tracking(channels(33, 128, 1024)), "instance_norm_wide");
  EXPECT_EQ(tracking(channels(8, 128, 1032)), "instance_norm_wide");
  EXPECT_EQ(tracking(channels(8, 1 << 18, 1024)), "instance_norm_wide");  // 2^31 elements
  EXPECT_EQ(instance(channels(8, 128, 1024)), "instance_norm_wide");
  EXPECT_EQ(instance(channels(8, 128, 65536)), "instance_norm_wide");
  EXPECT_EQ(instance(channels(8, 127, 65544)), "instance_norm_split");
  EXPECT_EQ(instance(channels(8, 128, 65544)), "instance_norm");  // 1024 instances
  EXPECT_EQ(instance(channels(8, 128, 8193)), "instance_norm");
  const auto group = [&](std::int64_t channels, std::int64_t spatial, std::int64_t groups) {
    return key<GroupNormFwdInterface>(*group_, GroupNormCall{.batch = 2,
                                                             .channels = channels,
                                                             .spatial = spatial,
                                                             .groups = groups,
                                                             .where = stated(90, 132)});
  };
  EXPECT_EQ(group(320, 4096, 32), "group_norm_wide");
  EXPECT_EQ(group(16, 4096, 1), "group_norm_wide");
  EXPECT_EQ(group(17, 4096, 1), "group_norm_split");
  EXPECT_EQ(group(6, 9801, 2), "group_norm");  // odd extents: accesses of one element
}

TEST_F(BatchNormDispatchTest, RefusalsSayTheLimitAndTheValue) {
  const auto selection =
      train_->select("batch_norm_fwd_train", channels(65, 2000, 129), {90, 132, 232448, "h200"});
  ASSERT_THAT(selection, is_ok());
  std::string reasons;
  for (const Verdict& v : selection->verdicts) reasons += v.key + ": " + v.reason + "\n";
  EXPECT_THAT(reasons, HasSubstr("without a spatial extent, got 129"));
  EXPECT_THAT(reasons, HasSubstr("at most 8192 accesses: got 8385 elements in accesses of 1"));
  EXPECT_THAT(reasons, HasSubstr("at most 1023 channels, got 2000"));
  const auto instance = instance_->select("instance_norm_fwd_train", channels(8, 128, 1024),
                                          {90, 132, 232448, "h200"});
  ASSERT_THAT(instance, is_ok());
  reasons.clear();
  for (const Verdict& v : instance->verdicts) reasons += v.key + ": " + v.reason + "\n";
  EXPECT_THAT(reasons, HasSubstr("serves calls that move running statistics, got one without"));
}

TEST_F(BatchNormDispatchTest, BadCallsAreRefusedWithTheValue) {
  const auto f32 = DType::float32, f16 = DType::float16;
  const auto refused = [](const Op& op, std::vector<std::optional<ArgSpec>> inputs,
                          const std::string& fragment) {
    inputs.resize(op.signature().inputs.size());
    CallArgs args{inputs, {}};
    absl::Status status = tools::complete_outputs(op, args);
    if (status.ok()) status = op.plan(args).status();
    EXPECT_EQ(status.code(), kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(fragment));
  };
  refused(*train_, {arg(f16, {1, 8})}, "must have more than one value a channel: got x of shape");
  refused(*train_, {arg(f16, {4, 8}), arg(f32, {8})}, "both or neither: got only running_mean");
  refused(*eval_, {arg(f16, {4, 8})}, "running_mean and running_var must be passed");
  refused(*train_, {arg(f16, {4, 8}), {}, {}, arg(f16, {8})}, "weight");
  refused(*train_, {arg(f16, {4})}, "x must have the shape");
  refused(*instance_, {arg(f16, {4, 8, 1})}, "more than one value an instance");
  refused(*group_, {arg(f16, {4, 7, 3})}, "num_groups must divide the channels: got 2 groups");
  EXPECT_THAT(make<BatchNormFwdOp>({.training = true, .eps = -1})
                  ->plan({{arg(f16, {4, 8}), {}, {}, {}, {}}, {arg(f16, {4, 8}), {}, {}}}),
              ::testing::Not(is_ok()));
}

TEST_F(BatchNormDispatchTest, StatisticsAreOutputsOfTrainingOnly) {
  const std::vector<std::optional<ArgSpec>> inputs = {
      arg(DType::float16, {4, 8, 3}), arg(DType::float32, {8}), arg(DType::float32, {8}), {}, {}};
  for (const auto* op : {train_.get(), eval_.get()}) {
    const Dims want = op == train_.get() ? Dims{8} : Dims{0};
    const auto outputs = infer_outputs(op->signature(), op->params(), inputs);
    ASSERT_THAT(outputs, is_ok());
    EXPECT_EQ((*outputs)[1].shape, want);
    EXPECT_EQ((*outputs)[2].shape, want);
    // The caller may leave them out.
    EXPECT_THAT(op->plan({inputs, {arg(DType::float16, {4, 8, 3}), {}, {}}}), is_ok());
  }
  const auto wrong =
      eval_->plan({inputs, {arg(DType::float16, {4, 8, 3}), arg(DType::float32, {8}), {}}});
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("mean exists only with training"));
}

// A recorded call does not say which outputs were left out, and must make what was run; which
// inputs a call has, it says, and programs differ by it.
TEST_F(BatchNormDispatchTest, TheIdentityHoldsWhichInputsACallHasAndNotWhichOutputs) {
  const ArgSpec x = arg(DType::float16, {4, 8, 3}), c = arg(DType::float32, {8});
  const auto identity = [&](const std::vector<std::optional<ArgSpec>>& inputs, bool statistics) {
    const std::optional<ArgSpec> out = statistics ? std::optional<ArgSpec>(c) : std::nullopt;
    const auto planned = tools::explain_call(*train_, {inputs, {x, out, out}}, DeviceType::cuda(),
                                             *reference_facts(90), false);
    EXPECT_THAT(planned, is_ok());
    return planned->at(0).identity;
  };
  const BuildIdentity bare = identity({x, {}, {}, {}, {}}, false);
  EXPECT_EQ(bare, identity({x, {}, {}, {}, {}}, true));
  EXPECT_NE(bare, identity({x, c, c, {}, {}}, false));
  EXPECT_NE(bare, identity({x, {}, {}, c, {}}, false));
  EXPECT_NE(bare, identity({x, {}, {}, {}, c}, false));
}

TEST_F(BatchNormDispatchTest, EmptyInputsCallNoKernel) {
  const CallArgs args{{arg(DType::float16, {0, 8, 3}), {}, {}, {}, {}},
                      {arg(DType::float16, {0, 8, 3}), {}, {}}};
  const auto plan = train_->plan(args);
  ASSERT_THAT(plan, is_ok());
  EXPECT_TRUE(plan->empty());
}

TEST_F(BatchNormDispatchTest, OneBinaryServesAllShapesOfAKind) {
  std::set<std::string> programs;
  for (const Dims& shape : {Dims{4, 8, 65544}, Dims{7, 5, 131072}, Dims{64, 256, 56, 56}}) {
    CallArgs args{{arg(DType::float16, shape), {}, {}, {}, {}}, {}};
    ASSERT_THAT(tools::complete_outputs(*train_, args), is_ok());
    const auto planned = tools::explain_call(*train_, args, DeviceType::cuda(),
                                             *reference_facts(90), /*look_up=*/true);
    ASSERT_THAT(planned, is_ok());
    EXPECT_EQ(planned->at(0).selection.chosen, "fwd_train_split");
    programs.insert(cache::to_hex(planned->at(0).programs.at(0).key));
  }
  EXPECT_EQ(programs.size(), 1u);
}

// What a thread in a part and the workspace agree on: no configuration has more parts than the
// interface reckons with.
TEST_F(BatchNormDispatchTest, PartsAreNeverSmallerThanTheWorkspaceReckonsWith) {
  for (const auto& [dtype, spatial] : {std::pair{DType::float16, 65537},
                                       {DType::float32, 65537},
                                       {DType::float16, 65544},
                                       {DType::float32, 1048576}}) {
    const auto plan = train_->entry_plan("batch_norm_fwd_train", "fwd_train_split",
                                         channels(3, 3, spatial, dtype));
    ASSERT_THAT(plan, is_ok());
    const std::unique_ptr<Kernel> kernel = plan->build();
    const DeviceFacts h200 = *reference_facts(90);
    std::vector<Config> configs = kernel->autotune_configs(h200);
    configs.push_back(kernel->default_config(h200));
    for (const Config& config : configs) {
      const std::int64_t packs = config["threads"] * std::max(config["items"], config["unroll"]);
      const std::int64_t width = config["slots"] > 0 ? 16 / size_of(dtype) : 1;
      EXPECT_GE(packs * width, 1024);
    }
  }
}

}  // namespace
}  // namespace kiln::testing
