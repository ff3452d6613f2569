#ifndef KILN_DEVICE_SUPPORT_H_
#define KILN_DEVICE_SUPPORT_H_

#include <kiln/compiler.h>
#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::inline v1 {

// The shape of one launch. `grid` in blocks, `block` and `cluster` in threads and blocks; a cluster
// of {1,1,1} is none.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t smem_bytes = 0;  // dynamic shared memory of a block
  bool programmatic_overlap =
      false;  // may start before the kernel ahead of it in the stream has ended (sm_90 on)
  bool cooperative = false;  // all blocks run at once, or the launch fails
};

// An image that was loaded on one device. Functions live as long as it does.
class KILN_EXPORT LoadedImage {
 public:
  virtual ~LoadedImage() = default;
  // Handles of the kernels asked for at load, in that order.
  virtual std::span<void* const> functions() const = 0;
};

// What a device type brings: facts, a compiler, loading, launching, memory. CUDA's is built in; the
// CPU backend and vendors' register theirs. Thread-safe. Nothing is probed before the first call of
// a method.
class KILN_EXPORT DeviceSupport {
 public:
  virtual ~DeviceSupport() = default;

  virtual DeviceType type() const = 0;

  // 0 when there is none. Errors: FailedPrecondition when the driver is missing or unusable (says
  // which and what to do).
  virtual absl::StatusOr<int> device_count() = 0;
  // Errors: NotFound for an index that is not there; as device_count().
  virtual absl::StatusOr<DeviceFacts> facts(int index) = 0;

  // The compile target for facts, "sm_90a". Pure: needs no device. Errors: InvalidArgument for
  // facts it knows no target for.
  virtual absl::StatusOr<std::string> target_for(const DeviceFacts& facts,
                                                 bool arch_specific) const = 0;
  // The compiler for this device type; never null; lives as long as this object.
  virtual const Compiler& compiler() const = 0;

  // Loads an image of kind `kind` on device `index` and finds `kernels` in it. `image` is only read
  // during the call.
  virtual absl::StatusOr<std::unique_ptr<LoadedImage>> load(
      int index, std::string_view kind, std::string_view image,
      std::span<const std::string> kernels) = 0;

  // Called once for each function and largest dynamic shared memory it will be launched with, after
  // `load` and before the first launch. Errors: ResourceExhausted with the bytes wanted and the
  // limit.
  virtual absl::Status prepare(int index, void* function, std::uint32_t smem_bytes) = 0;

  // Enqueues one launch on `stream`. `args[i]` points to the i-th parameter's value. The hot path:
  // no allocation, no lock. The caller's current context and error state are left as they were.
  virtual absl::Status launch(void* function, const Stream& stream, const LaunchShape& shape,
                              void** args) = 0;

  // True while `stream` records a graph: nothing is compiled or loaded then.
  virtual absl::StatusOr<bool> is_capturing(const Stream& stream) = 0;
  // Which graph that is: a number that no other capture of the process has; 0 where none is
  // recorded. Calls in a capture get scratch memory of their own.
  virtual absl::StatusOr<std::uint64_t> capture_id(const Stream& stream) {
    KILN_ASSIGN_OR_RETURN(const bool capturing, is_capturing(stream));
    return capturing ? 1 : 0;
  }

  // Memory and copies for the convenience forms and tools. Stream-ordered where the device can;
  // `bytes` may be 0.
  virtual absl::StatusOr<void*> allocate(const Stream& stream, std::size_t bytes) = 0;
  virtual absl::Status free(const Stream& stream, void* data) = 0;
  virtual absl::Status copy_to_device(const Stream& stream, void* device, const void* host,
                                      std::size_t bytes) = 0;
  virtual absl::Status copy_to_host(const Stream& stream, void* host, const void* device,
                                    std::size_t bytes) = 0;
  virtual absl::Status copy_on_device(const Stream& stream, void* to, const void* from,
                                      std::size_t bytes) = 0;
  // Copies a strided tensor to contiguous memory `to` of the same dtype and shape. Unimplemented
  // where the device type has no such copy: then an op refuses inputs that must be contiguous and
  // are not.
  virtual absl::Status copy_strided(const Stream& stream, void* to, const Tensor& from);
  virtual absl::Status fill(const Stream& stream, void* device, std::uint8_t value,
                            std::size_t bytes) = 0;
  virtual absl::Status synchronize(const Stream& stream) = 0;
  virtual absl::StatusOr<Stream> create_stream(int index) = 0;
  virtual absl::Status destroy_stream(const Stream& stream) = 0;

  // Device time in seconds of what `body` enqueues on `stream`; waits for it.
  virtual absl::StatusOr<double> time(const Stream& stream,
                                      const std::function<absl::Status()>& body) = 0;

  // Device time in seconds of one `body`, the mean of `repeats` of them, for tuning: `flush_bytes`
  // of memory are written before each, outside its time, so that it begins with a cold cache (0: it
  // begins warm). `body` enqueues the same work each time and may be recorded and replayed. Here by
  // `time`.
  virtual absl::StatusOr<double> measure(const Stream& stream,
                                         const std::function<absl::Status()>& body, int repeats,
                                         std::size_t flush_bytes);
  // How `measure` tells time, for records: "graph replay, events"; "clock".
  virtual std::string measure_method() const { return "clock"; }
  // Bytes that must be written to make the device's caches cold; 0: not known.
  virtual std::size_t cache_bytes(int /*index*/) { return 0; }
  // What a tuning record is bound to beside facts and compiler: the driver's version; empty: none,
  // or not known.
  virtual std::string driver_version() { return ""; }
};

}  // namespace kiln::inline v1

#endif  // KILN_DEVICE_SUPPORT_H_
