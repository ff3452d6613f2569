// Which implementation serves which rows, at each limit, on each arch; what is in their identities.
#include "runtime/tools.h"
#include "tests/kernel_sources/norm_fixture.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using enum absl::StatusCode;

class NormDispatchTest : public ::testing::TestWithParam<NormForm> {
 protected:
  std::string name(const std::string& suffix) const { return GetParam().stem + suffix; }
  bool is_layer_norm() const { return std::string(GetParam().stem) == "layer_norm"; }
  // Forms whose long rows clusters take from a queue, and whose longest are spread over all
  // multiprocessors, on archs with the shared memory for it.
  bool takes_from_a_queue() const {
    return is_layer_norm() || std::string(GetParam().stem) == "rms_norm";
  }
  std::string beyond_the_block(int arch) const {
    return name(takes_from_a_queue() && (arch == 90 || arch == 100) ? "_queue" : "_stream");
  }
  LayerNormCall call(std::int64_t n, DType dtype, int align, int arch) const {
    return {.n = n,
            .dtype = dtype,
            .has_weight = GetParam().has_weight,
            .has_bias = GetParam().has_bias,
            .align = align,
            .where = stated(arch, 100)};
  }
  std::string key(const LayerNormCall& c) const {
    absl::StatusOr<std::string> key = op_->key_for(interface_, c);
    return key.ok() ? *key : std::string(key.status().message());
  }

  Runtime runtime_{in_tree_options()};
  std::unique_ptr<Op> op_ = make_norm(runtime_, GetParam().op);
  std::string interface_ = interface_of(runtime_, GetParam().op);
};

TEST_P(NormDispatchTest, AWarpServesUpTo1024BytesABlockUpTo32768) {
  for (const int arch : kArchs) {
    for (const auto& [n, dtype, suffix] : std::vector<std::tuple<std::int64_t, DType, const char*>>{
             {1, DType::float16, "_warp"},
             {512, DType::float16, "_warp"},
             {513, DType::float16, ""},
             {256, DType::float32, "_warp"},
             {257, DType::float32, ""},
             {16384, DType::bfloat16, ""},
             {8192, DType::float32, ""},
             {8193, DType::float32, "_stream"}}) {
      EXPECT_EQ(key(call(n, dtype, 16, arch)), name(suffix)) << n << " on " << arch;
    }
    EXPECT_EQ(key(call(16392, DType::bfloat16, 16, arch)), beyond_the_block(arch)) << arch;
  }
}

TEST_P(NormDispatchTest, NarrowAccessesLeaveTheBlockEarlier) {
  for (const int arch : {80, 90, 120}) {
    const std::int64_t n = 16384;  // 2048, 4096, 8192 and 16384 accesses
    EXPECT_EQ(key(call(n, DType::float16, 16, arch)), name(""));
    EXPECT_EQ(key(call(n, DType::float16, 8, arch)), name(""));
    EXPECT_EQ(key(call(n, DType::float16, 4, arch)), name(""));
    EXPECT_EQ(key(call(n, DType::float16, 2, arch)), name("_stream"));
    EXPECT_EQ(key(call(8192, DType::float16, 2, arch)), name(""));
    EXPECT_EQ(key(call(8193, DType::float16, 16, arch)), name("_stream"));  // the length is odd
    EXPECT_EQ(key(call(8192, DType::float32, 4, arch)), name(""));
  }
}

TEST_P(NormDispatchTest, ClustersServeLongRowsFromSm90On) {
  for (const int arch : kArchs) {
    const std::string longest = name(arch >= 90 ? "_cluster_stream" : "_stream");
    const std::string held = beyond_the_block(arch);
    const std::string longer = held == name("_queue") ? held : longest;
    const std::string spread = held == name("_queue") ? name("_spread") : longest;
    EXPECT_EQ(key(call(16392, DType::float16, 16, arch)), held) << arch;  // 32784 bytes
    EXPECT_EQ(key(call(32768, DType::float16, 16, arch)), held) << arch;
    EXPECT_EQ(key(call(65536, DType::float16, 16, arch)), held) << arch;
    EXPECT_EQ(key(call(65544, DType::float16, 16, arch)), longer) << arch;
    EXPECT_EQ(key(call(131072, DType::float32, 16, arch)), longer) << arch;
    EXPECT_EQ(key(call(524288, DType::bfloat16, 16, arch)), longer) << arch;
    EXPECT_EQ(key(call(524296, DType::bfloat16, 16, arch)), spread) << arch;
    EXPECT_EQ(key(call(262144, DType::float32, 16, arch)), longer) << arch;
    EXPECT_EQ(key(call(262148, DType::float32, 16, arch)), spread) << arch;
    EXPECT_EQ(key(call(1 << 20, DType::float32, 16, arch)), spread) << arch;
    EXPECT_EQ(key(call((1 << 20) + 4, DType::float32, 16, arch)), longest) << arch;
    EXPECT_EQ(key(call(1 << 21, DType::bfloat16, 16, arch)), spread) << arch;
    EXPECT_EQ(key(call((1 << 21) + 8, DType::bfloat16, 16, arch)), longest) << arch;
    EXPECT_EQ(key(call(1 << 20, DType::bfloat16, 8, arch)), longest) << arch;
    EXPECT_EQ(key(call((1 << 20) + 7, DType::bfloat16, 2, arch)), longest) << arch;
    // Accesses of less than 16 bytes are not held.
    EXPECT_EQ(key(call(65536, DType::float16, 8, arch)), name("_stream")) << arch;
    EXPECT_EQ(key(call(131072, DType::float16, 8, arch)), longest) << arch;
  }
}

TEST_P(NormDispatchTest, RowsThatLieApartAreServedAlike) {
  for (const int arch : {80, 90, 120}) {
    for (const std::int64_t n : {1, 512, 4096, 20000, 40000, 200000, 1 << 20}) {
      LayerNormCall c = call(n, DType::float16, 16, arch);
      const std::string dense = key(c);
      c.strided = true;
      EXPECT_EQ(key(c), dense) << n << " on " << arch;
    }
  }
}

TEST_P(NormDispatchTest, WhatNobodyServesIsRefusedWithTheReason) {
  EXPECT_THAT(key(call(64, DType::float16, 1, 90)), HasSubstr("multiples of an element (2 bytes)"));
  EXPECT_THAT(key(call(64, DType::float32, 2, 90)), HasSubstr("multiples of an element (4 bytes)"));
  EXPECT_THAT(key(call(0, DType::float16, 16, 90)), HasSubstr("at least 1 element, got 0"));
  EXPECT_THAT(key(call(std::int64_t{1} << 31, DType::float16, 16, 90)),
              HasSubstr("at most 2147483647 elements"));
  EXPECT_THAT(key(call(64, DType::float64, 16, 90)), HasSubstr("got float64"));
  LayerNormCall c = call(64, DType::float16, 16, 90);
  c.eps = -1;
  EXPECT_THAT(key(c), HasSubstr("finite eps of at least 0, got -1"));
}

TEST_P(NormDispatchTest, TheIdentityHoldsWhatChangesTheBinary) {
  const LayerNormCall base = call(4096, DType::float16, 16, 90);
  const auto identity = [&](auto change) {
    LayerNormCall c = base;
    c.where = {};
    change(c);
    return op_->entry_plan(interface_, name(""), c)->identity;
  };
  const BuildIdentity same = identity([](LayerNormCall&) {});
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.n = 4104; }));
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.eps = 1e-6; }));
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.dtype = DType::bfloat16; }));
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.align = 8; }));
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.has_weight = !c.has_weight; }));
  EXPECT_NE(same, identity([](LayerNormCall& c) { c.has_bias = !c.has_bias; }));
  EXPECT_EQ(same, identity([](LayerNormCall& c) { c.strided = true; }));
  EXPECT_EQ(same, identity([](LayerNormCall& c) { c.few_rows = true; }));
  // Only the accesses that the length allows count: an odd row has no wide ones at any alignment.
  const auto odd = [](int align) { return [=](LayerNormCall& c) { c.n = 4097, c.align = align; }; };
  EXPECT_EQ(identity(odd(16)), identity(odd(2)));
}

TEST_P(NormDispatchTest, EveryProblemIsServedOnEveryArchAndEveryImplementationIsReached) {
  std::set<std::string> reached;
  int problems = 0;
  for (const internal::CallLine& line : norm_problems(runtime_)) {
    if (line.call.op != GetParam().op) continue;
    ++problems;
    const std::unique_ptr<Op> op = make_op(runtime_, line.call.op, line.call.params);
    ASSERT_NE(op, nullptr) << "problems.jsonl:" << line.line;
    for (const int arch : kArchs) {
      const auto planned = tools::explain_call(*op, line.call.args, DeviceType::cuda(),
                                               *reference_facts(arch), false);
      ASSERT_THAT(planned, is_ok()) << "problems.jsonl:" << line.line;
      EXPECT_THAT(planned->at(0).selection.error, is_ok()) << "problems.jsonl:" << line.line;
      reached.insert(planned->at(0).selection.chosen.value_or("none"));
    }
  }
  EXPECT_GT(problems, is_layer_norm() ? 90 : 35);
  std::set<std::string> all;
  for (const KernelRow& row : runtime_.kernel_rows(GetParam().op)) all.insert(row.key);
  EXPECT_EQ(all.size(), takes_from_a_queue() ? 7u : 5u);
  EXPECT_EQ(reached, all);
}

TEST_P(NormDispatchTest, FewRowsAreSharedByClusters) {
  const auto key_of = [&](std::int64_t n, int arch, int align = 16) {
    LayerNormCall few = call(n, DType::float16, align, arch);
    few.few_rows = true;
    return key(few);
  };
  const std::int64_t least = GetParam().least_of_clusters() / 2;
  EXPECT_EQ(key_of(least - 8, 90), name(""));
  EXPECT_EQ(key_of(least, 90), name("_cluster"));
  EXPECT_EQ(key_of(16384, 120), name("_cluster"));
  EXPECT_EQ(key_of(16392, 90), beyond_the_block(90));
  EXPECT_EQ(key_of(16384, 89), name(""));
  // Accesses that a block has too many of stay with the general implementation.
  EXPECT_EQ(key_of(16384, 90, 2), name("_stream"));
  EXPECT_EQ(key(call(16384, DType::float16, 16, 90)), name(""));
}

TEST_P(NormDispatchTest, UpTo32RowsAreFew) {
  const std::int64_t n = 16384;
  const ParamValues params = {{"normalized_shape", std::vector<std::int64_t>{n}}, {"eps", 1e-5}};
  const auto op = make_op(runtime_, GetParam().op, params);
  ASSERT_NE(op, nullptr);
  const auto chosen = [&](const Dims& batch) -> std::string {
    CallArgs args;
    for (const TensorParam& input : op->signature().inputs) {
      args.inputs.push_back(contiguous_arg({.device = Device{DeviceType::cuda(), 0},
                                            .dtype = DType::bfloat16,
                                            .shape = is_factor(input) ? Dims{n} : batch}));
    }
    const auto outputs = infer_outputs(op->signature(), params, args.inputs);
    if (!outputs.ok()) return std::string(outputs.status().message());
    for (const TensorSpec& output : *outputs) args.outputs.push_back(contiguous_arg(output));
    const auto planned =
        tools::explain_call(*op, args, DeviceType::cuda(), *reference_facts(90), false);
    if (!planned.ok()) return std::string(planned.status().message());
    return planned->at(0).selection.chosen.value_or("none");
  };
  EXPECT_EQ(chosen({n}), name("_cluster"));
  EXPECT_EQ(chosen({1, n}), name("_cluster"));
  EXPECT_EQ(chosen({4, 8, n}), name("_cluster"));
  EXPECT_EQ(chosen({33, n}), name(""));
  EXPECT_EQ(chosen({3, 11, n}), name(""));
  // No rows are few, wherever the shape says so.
  EXPECT_EQ(chosen({0, n}), name("_cluster"));
  EXPECT_EQ(chosen({0, 40, n}), name("_cluster"));
  EXPECT_EQ(chosen({40, 0, n}), name("_cluster"));
}

// Sums are made by warps: as many threads in a block's configurations as between a cluster's
// blocks, and a row has the same bits in every batch, tuned or not.
TEST_P(NormDispatchTest, ClustersHaveTheThreadsOfTheBlock) {
  const auto op = make_norm(runtime_, GetParam().op);
  const auto threads = [&](const char* suffix, const LayerNormCall& of, const DeviceFacts& facts) {
    const auto kernel =
        op->entry_plan(interface_of(runtime_, GetParam().op), name(suffix), of)->build();
    std::set<std::int64_t> all = {kernel->default_config(facts)["threads"]};
    for (const Config& config : kernel->autotune_configs(facts)) all.insert(config["threads"]);
    return all;
  };
  for (const int arch : {90, 100, 120}) {
    const DeviceFacts facts = *reference_facts(arch);
    for (const DType dtype : {DType::bfloat16, DType::float32}) {
      for (std::int64_t n = GetParam().least_of_clusters() / size_of(dtype);
           n <= 32768 / size_of(dtype); n += 264) {
        const LayerNormCall few = call(n, dtype, 16, arch);
        ASSERT_EQ(threads("_cluster", few, facts).size(), 1u) << n;
        ASSERT_EQ(threads("_cluster", few, facts), threads("", few, facts)) << n;
      }
    }
    const LayerNormCall shorter =
        call(GetParam().least_of_clusters() / 2 - 8, DType::bfloat16, 16, arch);
    EXPECT_GT(threads("", shorter, facts).size(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, NormDispatchTest, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.op); });

}  // namespace
}  // namespace kiln::testing
