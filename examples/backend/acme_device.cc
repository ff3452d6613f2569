#include "acme_device.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace acme {
namespace {

// This backend serves calls by a target, whose kernels are its own; nothing is compiled for it.
absl::Status compiles_nothing() {
  return absl::UnimplementedError(
      "acme: kernels must come from target acme: this device type has no compiler");
}

class NoCompiler final : public kiln::Compiler {
 public:
  absl::StatusOr<kiln::CompilerId> id() const override {
    return absl::FailedPreconditionError("acme: this device type has no compiler");
  }
  absl::StatusOr<kiln::CompileResult> compile(const kiln::CompileRequest&) const override {
    return compiles_nothing();
  }
};

absl::Status check_index(int index) {
  if (index == 0) return absl::OkStatus();
  return absl::NotFoundError("acme: the device must be acme:0, the only one: got index " +
                             std::to_string(index));
}

absl::Status copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<kiln::DeviceFacts> AcmeDevice::facts(int index) {
  KILN_RETURN_IF_ERROR(check_index(index));
  return kiln::DeviceFacts{.arch = 0, .sm_count = 1, .smem_budget = 0, .calibration = "acme1"};
}

absl::StatusOr<std::string> AcmeDevice::target_for(const kiln::DeviceFacts& facts, bool) const {
  return facts.calibration;
}

const kiln::Compiler& AcmeDevice::compiler() const {
  static const NoCompiler compiler;
  return compiler;
}

absl::StatusOr<std::unique_ptr<kiln::LoadedImage>> AcmeDevice::load(int, std::string_view,
                                                                    std::string_view,
                                                                    std::span<const std::string>) {
  return compiles_nothing();
}
absl::Status AcmeDevice::prepare(int, void*, std::uint32_t) { return compiles_nothing(); }
absl::Status AcmeDevice::launch(void*, const kiln::Stream&, const kiln::LaunchShape&, void**) {
  return compiles_nothing();
}

absl::StatusOr<void*> AcmeDevice::allocate(const kiln::Stream&, std::size_t bytes) {
  void* data = std::malloc(bytes > 0 ? bytes : 1);
  if (data == nullptr) {
    return absl::ResourceExhaustedError("acme: must get memory: wanted " + std::to_string(bytes) +
                                        " bytes");
  }
  return data;
}
absl::Status AcmeDevice::free(const kiln::Stream&, void* data) {
  std::free(data);
  return absl::OkStatus();
}

absl::Status AcmeDevice::copy_to_device(const kiln::Stream&, void* device, const void* host,
                                        std::size_t bytes) {
  return copy(device, host, bytes);
}
absl::Status AcmeDevice::copy_to_host(const kiln::Stream&, void* host, const void* device,
                                      std::size_t bytes) {
  return copy(host, device, bytes);
}
absl::Status AcmeDevice::copy_on_device(const kiln::Stream&, void* to, const void* from,
                                        std::size_t bytes) {
  return copy(to, from, bytes);
}
absl::Status AcmeDevice::fill(const kiln::Stream&, void* device, std::uint8_t value,
                              std::size_t bytes) {
  if (bytes > 0) std::memset(device, value, bytes);
  return absl::OkStatus();
}

absl::StatusOr<kiln::Stream> AcmeDevice::create_stream(int index) {
  KILN_RETURN_IF_ERROR(check_index(index));
  return kiln::Stream{{type_, 0}, nullptr};
}

absl::StatusOr<double> AcmeDevice::time(const kiln::Stream&,
                                        const std::function<absl::Status()>& body) {
  const auto start = std::chrono::steady_clock::now();
  KILN_RETURN_IF_ERROR(body());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace acme
