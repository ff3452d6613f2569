#ifndef KILN_BACKENDS_CPU_CPU_SUPPORT_H_
#define KILN_BACKENDS_CPU_CPU_SUPPORT_H_

#include <kiln/device_support.h>
#include <kiln/host_compiler.h>
#include <kiln/status.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln::cpu {

struct CpuSupportOptions {
  HostCompilerOptions compiler;
  int threads = 0;  // that run kernels; 0: as many as this process may use
};

// The device type "cpu": one device, the processor this runs on.
//
//   arch         0
//   sm_count     hardware threads that this process may use (its affinity)
//   smem_budget  bytes of scratch memory one block may use: the second-level cache, 1 MiB where the
//   system does not tell calibration  the instruction set kernels are built for, which is also the
//   compile target
//
// Kernels are C functions (kernels/block.hpp) in shared objects made by the system's compiler. A
// launch has ended when `launch` returns; its blocks are spread over a pool of threads. Streams are
// null handles.
//
// Thread-safe. A process forked from one that has launched can launch too.
class CpuSupport final : public DeviceSupport {
 public:
  explicit CpuSupport(CpuSupportOptions options = {});
  ~CpuSupport() override;

  DeviceType type() const override { return DeviceType::cpu(); }
  absl::StatusOr<int> device_count() override { return 1; }
  absl::StatusOr<DeviceFacts> facts(int index) override;
  absl::StatusOr<std::string> target_for(const DeviceFacts& facts,
                                         bool arch_specific) const override;
  const Compiler& compiler() const override { return *compiler_; }

  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int index, std::string_view kind,
                                                    std::string_view image,
                                                    std::span<const std::string> kernels) override;
  absl::Status prepare(int index, void* function, std::uint32_t smem_bytes) override;
  absl::Status launch(void* function, const Stream& stream, const LaunchShape& shape,
                      void** args) override;
  absl::StatusOr<bool> is_capturing(const Stream& stream) override;

  absl::StatusOr<void*> allocate(const Stream& stream, std::size_t bytes) override;
  absl::Status free(const Stream& stream, void* data) override;
  absl::Status copy_to_device(const Stream& stream, void* device, const void* host,
                              std::size_t bytes) override;
  absl::Status copy_to_host(const Stream& stream, void* host, const void* device,
                            std::size_t bytes) override;
  absl::Status copy_on_device(const Stream& stream, void* to, const void* from,
                              std::size_t bytes) override;
  absl::Status fill(const Stream& stream, void* device, std::uint8_t value,
                    std::size_t bytes) override;
  absl::Status synchronize(const Stream& stream) override;
  absl::StatusOr<Stream> create_stream(int index) override;
  absl::Status destroy_stream(const Stream& stream) override;
  absl::StatusOr<double> time(const Stream& stream,
                              const std::function<absl::Status()>& body) override;

 private:
  // What is asked of the system, at the first call that needs it.
  struct Machine;
  Machine& machine();

  const CpuSupportOptions options_;
  const std::unique_ptr<Compiler> compiler_;
  std::once_flag once_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_CPU_SUPPORT_H_
