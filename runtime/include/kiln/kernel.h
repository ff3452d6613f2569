#ifndef KILN_KERNEL_H_
#define KILN_KERNEL_H_

#include <kiln/any_call.h>
#include <kiln/device.h>
#include <kiln/device_support.h>
#include <kiln/export.h>
#include <kiln/identity.h>
#include <kiln/program.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

// Why an implementation does not serve a call; `serves` when it does.
using Refusal = std::optional<std::string>;
inline constexpr std::nullopt_t serves = std::nullopt;

// A reason, put together from its parts: refuse("serves rows of at most 256, got ", call.n).
template <class... A>
Refusal refuse(const A&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  auto one = [&out](const auto& part) {
    if constexpr (requires { out << part; } && !std::is_enum_v<std::remove_cvref_t<decltype(part)>>)
      out << part;
    else
      out << to_string(part);
  };
  (one(parts), ...);
  return out.str();
}

// The tunable constants of a kernel by name: tile sizes, stages, splits. A value; order is the
// author's.
class KILN_EXPORT Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<std::string, std::int64_t>> values) : values_(values) {}
  bool empty() const { return values_.empty(); }
  // The value of `name`. REQUIRES: it is there (an author reads only what the same class wrote); 0
  // otherwise.
  std::int64_t operator[](std::string_view name) const;
  void set(std::string_view name, std::int64_t value);
  const std::vector<std::pair<std::string, std::int64_t>>& values() const { return values_; }
  friend bool operator==(const Config&, const Config&) = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> values_;
};
KILN_EXPORT std::string to_string(const Config& config);  // "threads=256 stages=2"

// The contract of one place where an op calls a kernel: `forward`, further methods, and the call
// spec type. Write
//
//   struct LayerNormFwdInterface : KernelInterface<LayerNormCall> {
//     KILN_KERNEL_INTERFACE(LayerNormFwdInterface, forward)
//     virtual absl::Status forward(const Stream& stream, const Tensor& x, …) const = 0;
//   };
//
// KILN_KERNEL_INTERFACE is given every abstract method: their types make the contract's
// fingerprint, by which a plugin built against another version of the interface is told apart.
template <class Call>
struct KernelInterface {
  using Request = Call;
  virtual ~KernelInterface() = default;
};

template <class... Methods>
constexpr std::uint64_t contract_of(std::uint64_t h) {
  ((h = fnv1a(type_name_of<std::type_identity<Methods>>(), h)), ...);
  return h;
}

#define KILN_METHOD_TYPES_(T, m, ...) \
  decltype(&T::m) __VA_OPT__(, KILN_METHOD_TYPES_AGAIN_ KILN_PARENS_(T, __VA_ARGS__))
#define KILN_METHOD_TYPES_AGAIN_() KILN_METHOD_TYPES_
#define KILN_KERNEL_INTERFACE(T, ...)                                             \
  using Interface = T;                                                            \
  static constexpr std::string_view interface_name = #T;                          \
  static std::uint64_t contract() {                                               \
    return ::kiln::contract_of<KILN_EXPAND_(KILN_METHOD_TYPES_(T, __VA_ARGS__))>( \
        ::kiln::call_spec_type<Request>().fingerprint);                           \
  }

// Devices of one type that a process can use.
inline constexpr int kMaxDevices = 64;
// Streams of a tuning sweep carry their device's index plus this: so a candidate runs beside the
// configuration in force, which other threads go on using. Kernels and ops need not know.
inline constexpr int kSweepIndex = kMaxDevices;

// What a kernel launches on one device: the functions of its programs, in the order of `programs()`
// and of each program's `kernels`, with the configuration they were compiled for. Both are one
// object, so a sweep that swaps them cannot launch one configuration's code with another's grid.
// Immutable once published.
struct Loaded {
  Config config;
  std::vector<void*> functions;
  DeviceFacts facts;
  DeviceSupport* support = nullptr;
  std::vector<std::shared_ptr<LoadedImage>> images;
};

// An implementation derives from Kernel and from one kernel interface. What it does not declare is
// as here.
//
// Thread-safe: `forward` and all const members run on many threads at once. Members must not change
// after construction.
class KILN_EXPORT Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel();

  // Availability: the device types and archs it runs on. No archs: all.
  static constexpr std::array<DeviceType, 1> devices{DeviceType::cuda()};
  static constexpr std::array<int, 0> supported_archs{};
  // Preference: a general one serves what no other serves; `preferred_over` names keys of the same
  // interface that lose where both serve.
  static constexpr bool general = false;
  static constexpr std::array<std::string_view, 0> preferred_over{};
  // Applicability: why this class does not serve a call. An override ends with its base class's
  // refusal.
  template <class Call>
  static Refusal refusal(const Call&) {
    return serves;
  }

  // What to compile for a device and a configuration. Pure: touches no device, so warming needs
  // none.
  virtual std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const = 0;
  // The configuration used until a tuned one is known. Pure.
  virtual Config default_config(const DeviceFacts& facts) const;
  // The configurations a sweep tries; none: the kernel does not tune. Pure.
  virtual std::vector<Config> autotune_configs(const DeviceFacts& facts) const;
  // A sweep's values for an input that decides how much work is done (lengths, indices, masks), by
  // its name in the signature, in row-major order; nullopt: random numbers of its dtype will do. An
  // integer or boolean input that no kernel of the entry supplies keeps the entry from being tuned.
  // Pure.
  virtual std::optional<std::vector<double>> tuning_input(std::string_view name,
                                                          const TensorSpec& spec) const;
  // True when callers find the kernel's inputs in the device's last-level cache: a sweep then
  // measures it warm, and else cold. Pure.
  virtual bool tunes_warm() const { return false; }
  // The kernels this entry owns, itself included. Overridden by one that owns others.
  virtual std::vector<Kernel*> kernels();

  // The configuration in force on the device that loaded last; empty before any has.
  Config config() const;

  // Turns on tuning mode for this kernel alone: it is swept at once for what it was called with, or
  // at the first call that reaches it. False when it does not tune: it offers no configurations, or
  // no op has built it. Not to be called from a progress callback.
  bool request_tune();
  bool tuning_requested() const { return tuning_.load(std::memory_order_relaxed); }
  // For the runtime: what `request_tune` does. Set before the kernel is shared.
  void set_tuner(std::function<bool(Kernel&)> tuner) { tuner_ = std::move(tuner); }

  // For the runtime: publishes what was loaded for a device; the old one stays valid until the
  // kernel is gone. On a sweep's index it is gone at once, and null takes it away. REQUIRES: 0 <=
  // index < 2 * kMaxDevices.
  void publish(int index, std::unique_ptr<const Loaded> loaded);
  const Loaded* loaded_on(int index) const {
    return index < 2 * kMaxDevices
               ? loaded_[static_cast<std::size_t>(index)].load(std::memory_order_acquire)
               : nullptr;
  }

 protected:
  // What to launch on the stream's device. REQUIRES: inside `forward`, which runs only where the
  // kernel is loaded.
  const Loaded& loaded(const Stream& stream) const { return *loaded_on(stream.device.index); }

  // Enqueues function `f` of `loaded` with the given arguments, each passed by value as the
  // kernel's parameter of that place. An empty grid launches nothing.
  template <class... A>
  absl::Status launch(const Loaded& loaded, std::size_t f, const Stream& stream,
                      const LaunchShape& shape, const A&... args) const {
    static_assert((std::is_trivially_copyable_v<A> && ...), "kernel arguments are plain values");
    static_assert((!std::is_same_v<A, Tensor> && ...),
                  "pass a tensor's data pointer, not the tensor");
    void* packed[sizeof...(A) + 1] = {const_cast<void*>(static_cast<const void*>(&args))...,
                                      nullptr};
    return launch_packed(loaded, f, stream, shape, packed);
  }

 private:
  absl::Status launch_packed(const Loaded& loaded, std::size_t f, const Stream& stream,
                             const LaunchShape& shape, void** args) const;

  std::array<std::atomic<const Loaded*>, 2 * kMaxDevices> loaded_{};
  std::atomic<const Loaded*> last_{nullptr};
  struct Owned;
  std::atomic<Owned*> owned_{nullptr};
  std::atomic<bool> tuning_{false};
  std::function<bool(Kernel&)> tuner_;
};

// Lists for `preferred_over`, `supported_archs` and `devices`:
//   static constexpr auto preferred_over = keys("layer_norm");
//   static constexpr auto supported_archs = archs(80, 86, 89, 90);
template <class... K>
consteval std::array<std::string_view, sizeof...(K)> keys(K... names) {
  return {std::string_view(names)...};
}
template <class... A>
consteval std::array<int, sizeof...(A)> archs(A... numbers) {
  return {numbers...};
}

}  // namespace kiln::inline v1

#endif  // KILN_KERNEL_H_
