#ifndef KILN_RUNTIME_H_
#define KILN_RUNTIME_H_

#include <kiln/device.h>
#include <kiln/device_support.h>
#include <kiln/export.h>
#include <kiln/options.h>
#include <kiln/registry.h>
#include <kiln/stats.h>
#include <kiln/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::inline v1 {

// A plugin that was skipped, and why.
struct LoadFailure {
  std::string file;
  std::string reason;
};

// Everything that ops of one process share: registered ops, implementations and targets, device
// types, sources, the cache, the compilers, loaded modules. Thread-safe. A program has one,
// `instance()`; tests make their own.
class KILN_EXPORT Runtime {
 public:
  explicit Runtime(RuntimeOptions options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The process's own, made from the environment on first use and never destroyed.
  static Runtime& instance();

  const RuntimeOptions& options() const;

  // Registers what `staged` holds, all of it or nothing. AlreadyExists with
  // ErrorKind::backend_error: a key, target builder or device type that is there already, or a
  // source name with other contents.
  absl::Status commit(Registry staged);

  // Loads the plugins of `options().backend_path` and the install folder, once; the first op does
  // it too.
  void load_backends();
  std::vector<LoadFailure> load_failures() const;
  std::vector<std::string> registered_targets() const;
  std::string default_target() const;  // empty: none
  // UnknownTarget when no detector and no builder names it. Affects op instances that have not
  // settled.
  absl::Status set_default_target(std::string target);

  // All ops by name. NotFound lists those there are.
  std::vector<std::string> op_names() const;
  absl::StatusOr<const OpType*> op_type(std::string_view name) const;
  std::vector<KernelRow> kernel_rows(std::string_view op) const;
  const Reference* reference(std::string_view op) const;  // null: none
  absl::StatusOr<std::unique_ptr<Op>> create_op(std::string_view name, const ParamValues& params,
                                                OpOptions options = {});

  // NotFound lists the device types that are registered.
  absl::StatusOr<DeviceSupport*> device_support(DeviceType type);
  std::vector<DeviceType> device_types() const;

  RuntimeStats stats() const;

  struct Impl;
  Impl& impl() { return *impl_; }  // for the library itself

 private:
  std::unique_ptr<Impl> impl_;
};

// The same on `Runtime::instance()`.
KILN_EXPORT absl::Status register_kernel_type(std::string op, std::string key, KernelType type);
KILN_EXPORT absl::Status register_detector(std::string target, Detect detect);
KILN_EXPORT absl::Status register_kernel_builder(std::string op, std::string target,
                                                 BuildTargetKernel build);
KILN_EXPORT absl::Status set_default_target(std::string target);

}  // namespace kiln::inline v1

#endif  // KILN_RUNTIME_H_
