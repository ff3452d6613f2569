#ifndef KILN_EXAMPLES_BACKEND_ACME_DEVICE_H_
#define KILN_EXAMPLES_BACKEND_ACME_DEVICE_H_

#include <kiln/device_support.h>

namespace acme {

// The device type "acme". This template has no hardware: its one device, acme:0, is host memory,
// and all work has ended when a call returns. Put your driver's calls in place. Thread-safe: no
// state.
class AcmeDevice final : public kiln::DeviceSupport {
 public:
  explicit AcmeDevice(kiln::DeviceType type) : type_(type) {}

  kiln::DeviceType type() const override { return type_; }
  absl::StatusOr<int> device_count() override { return 1; }
  absl::StatusOr<kiln::DeviceFacts> facts(int index) override;
  absl::StatusOr<std::string> target_for(const kiln::DeviceFacts& facts,
                                         bool arch_specific) const override;
  const kiln::Compiler& compiler() const override;

  absl::StatusOr<std::unique_ptr<kiln::LoadedImage>> load(
      int index, std::string_view kind, std::string_view image,
      std::span<const std::string> kernels) override;
  absl::Status prepare(int index, void* function, std::uint32_t smem_bytes) override;
  absl::Status launch(void* function, const kiln::Stream& stream, const kiln::LaunchShape& shape,
                      void** args) override;
  absl::StatusOr<bool> is_capturing(const kiln::Stream&) override { return false; }

  absl::StatusOr<void*> allocate(const kiln::Stream& stream, std::size_t bytes) override;
  absl::Status free(const kiln::Stream& stream, void* data) override;
  absl::Status copy_to_device(const kiln::Stream& stream, void* device, const void* host,
                              std::size_t bytes) override;
  absl::Status copy_to_host(const kiln::Stream& stream, void* host, const void* device,
                            std::size_t bytes) override;
  absl::Status copy_on_device(const kiln::Stream& stream, void* to, const void* from,
                              std::size_t bytes) override;
  absl::Status fill(const kiln::Stream& stream, void* device, std::uint8_t value,
                    std::size_t bytes) override;
  absl::Status synchronize(const kiln::Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<kiln::Stream> create_stream(int index) override;
  absl::Status destroy_stream(const kiln::Stream&) override { return absl::OkStatus(); }
  absl::StatusOr<double> time(const kiln::Stream& stream,
                              const std::function<absl::Status()>& body) override;

 private:
  const kiln::DeviceType type_;
};

}  // namespace acme

#endif  // KILN_EXAMPLES_BACKEND_ACME_DEVICE_H_
