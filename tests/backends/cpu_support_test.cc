#include "backends/cpu/cpu_support.h"

#include "tests/backends/cpu_fixture.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

using cpu::CpuSupport;
using ::testing::AnyOf;
using testing::compile_for_cpu;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::kCpuStream;
using testing::status_is;

TEST(CpuSupportTest, FactsAreThoseOfThisProcess) {
  CpuSupport support;
  EXPECT_EQ(support.type().name(), "cpu");
  EXPECT_EQ(support.device_count().value(), 1);
  const auto facts = support.facts(0);
  ASSERT_THAT(facts, is_ok());
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(facts->arch, 0);
  EXPECT_EQ(facts->sm_count, CPU_COUNT(&set));
  EXPECT_GE(facts->smem_budget, 64 << 10);
  EXPECT_THAT(facts->calibration,
              AnyOf("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"));
  EXPECT_THAT(support.facts(1), status_is(absl::StatusCode::kNotFound, HasSubstr("got index 1")));
}

TEST(CpuSupportTest, TargetNeedsNoDevice) {
  const CpuSupport support;
  for (const char* known : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}) {
    EXPECT_EQ(support.target_for({.calibration = known}, false).value(), known);
    EXPECT_EQ(support.target_for({.calibration = known}, true).value(), known);
  }
  EXPECT_THAT(support.target_for({.calibration = "h200"}, false),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("got 'h200'")));
  EXPECT_THAT(support.target_for({.calibration = "native"}, false),
              status_is(absl::StatusCode::kInvalidArgument));
}

TEST(CpuSupportTest, MemoryIsAlignedCopiedAndFilled) {
  CpuSupport support;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
    const auto data = support.allocate(kCpuStream, bytes);
    ASSERT_THAT(data, is_ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*data) % 64, 0u);
    const std::string pattern(bytes, 'k');
    std::string back(bytes, '?');
    EXPECT_THAT(support.copy_to_device(kCpuStream, *data, pattern.data(), bytes), is_ok());
    EXPECT_THAT(support.copy_to_host(kCpuStream, back.data(), *data, bytes), is_ok());
    EXPECT_EQ(back, pattern);
    EXPECT_THAT(support.fill(kCpuStream, *data, 7, bytes), is_ok());
    EXPECT_EQ(std::string(static_cast<char*>(*data), bytes), std::string(bytes, '\7'));
    EXPECT_THAT(support.free(kCpuStream, *data), is_ok());
  }
  EXPECT_THAT(support.copy_on_device(kCpuStream, nullptr, nullptr, 0), is_ok());
  EXPECT_THAT(support.copy_on_device(kCpuStream, nullptr, nullptr, 8),
              status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(support.fill(kCpuStream, nullptr, 0, 8),
              status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(support.allocate(kCpuStream, SIZE_MAX),
              status_is(absl::StatusCode::kResourceExhausted));
}

TEST(CpuSupportTest, StreamsAreNullHandles) {
  CpuSupport support;
  const auto stream = support.create_stream(0);
  ASSERT_THAT(stream, is_ok());
  EXPECT_EQ(stream->handle, nullptr);
  EXPECT_FALSE(support.is_capturing(*stream).value());
  EXPECT_THAT(support.synchronize(*stream), is_ok());
  int something = 0;
  EXPECT_THAT(support.synchronize({{DeviceType::cpu(), 0}, &something}),
              status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(support.synchronize({{DeviceType::cuda(), 0}, nullptr}),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("cuda:0")));
}

TEST(CpuSupportTest, TimeIsThatOfTheBody) {
  CpuSupport support;
  const auto seconds = support.time(kCpuStream, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  });
  ASSERT_THAT(seconds, is_ok());
  EXPECT_GE(*seconds, 0.02);
  EXPECT_THAT(support.time(kCpuStream, [] { return absl::AbortedError("why"); }),
              status_is(absl::StatusCode::kAborted));
}

TEST(CpuSupportTest, WithoutACompilerTheErrorSaysSo) {
  CpuSupport support({.compiler = {.compiler = "no-such-compiler"}});
  EXPECT_THAT(compile_for_cpu(support, "", {}),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("no-such-compiler")));
}

TEST(CpuLoadTest, RefusesWhatIsNoImage) {
  CpuSupport support;
  const auto image = compile_for_cpu(support, "KILN_CPU_KERNEL(nothing) {}", {"nothing"});
  ASSERT_THAT(image, is_ok());
  const std::vector<std::string> kernels = {"nothing"};
  EXPECT_THAT(support.load(0, "host_object", image->image, kernels), is_ok());
  EXPECT_THAT(support.load(1, "host_object", image->image, kernels),
              status_is(absl::StatusCode::kNotFound));
  EXPECT_THAT(support.load(0, "cubin", image->image, kernels),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("got 'cubin'")));
  const std::vector<std::string> other = {"nothing", "something"};
  EXPECT_THAT(support.load(0, "host_object", image->image, other),
              status_is(absl::StatusCode::kNotFound, HasSubstr("'something'")));
  EXPECT_THAT(support.load(0, "host_object", "", kernels),
              status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(support.load(0, "host_object", std::string(5000, 'x'), kernels),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("5000 bytes")));
  // Cut anywhere: an error, and never the SIGBUS that the system's loader would meet.
  const std::string& whole = image->image;
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 199) {
    EXPECT_THAT(support.load(0, "host_object", whole.substr(0, size), kernels),
                status_is(absl::StatusCode::kInvalidArgument))
        << size;
  }
}

}  // namespace
}  // namespace kiln
