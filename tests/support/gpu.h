#ifndef KILN_TESTS_SUPPORT_GPU_H_
#define KILN_TESTS_SUPPORT_GPU_H_

#include <kiln/status.h>

#include "runtime/cuda_driver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

// The only place where a test may decide that it cannot run because there is no device.
namespace kiln::testing {

struct GpuState {
  enum class Kind { here, absent, broken } kind = Kind::here;
  std::string reason;
};

// Absent is a machine without the driver or without a device that is visible. A driver that is
// there and does not work is broken, which no test may skip over.
inline GpuState gpu_state() {
  const auto driver = CudaDriver::open();
  if (!driver.ok()) {
    const std::string reason = message_of(driver.status());
    const bool missing = reason.find("could not be opened") != std::string::npos;
    return {missing ? GpuState::Kind::absent : GpuState::Kind::broken, reason};
  }
  if ((*driver)->has_devices()) return {};
  return {GpuState::Kind::absent, "cuda: the driver sees no device"};
}

inline bool gpu_is_required() {
  const char* const value = std::getenv("KILN_REQUIRE_GPU");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace kiln::testing

// First line of a test, or of a fixture's SetUp, that needs a device. KILN_REQUIRE_GPU=1 makes a
// skip a failure.
#define KILN_NEEDS_GPU()                                                                         \
  do {                                                                                           \
    const ::kiln::testing::GpuState kiln_gpu = ::kiln::testing::gpu_state();                     \
    if (kiln_gpu.kind == ::kiln::testing::GpuState::Kind::here) break;                           \
    if (kiln_gpu.kind == ::kiln::testing::GpuState::Kind::broken) FAIL() << kiln_gpu.reason;     \
    if (::kiln::testing::gpu_is_required()) FAIL() << "KILN_REQUIRE_GPU=1: " << kiln_gpu.reason; \
    GTEST_SKIP() << kiln_gpu.reason;                                                             \
  } while (false)

#endif  // KILN_TESTS_SUPPORT_GPU_H_
