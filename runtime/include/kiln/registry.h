#ifndef KILN_REGISTRY_H_
#define KILN_REGISTRY_H_

#include <kiln/device_support.h>
#include <kiln/export.h>
#include <kiln/kernel.h>
#include <kiln/signature.h>
#include <kiln/sources.h>
#include <kiln/status.h>
#include <kiln/target.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

class Op;
struct OpOptions;

// One kernel interface of an op, erased.
struct InterfaceType {
  std::string name;       // "layer_norm_fwd": what kernel_for and key_for are asked by
  std::string type_name;  // "LayerNormFwdInterface"
  std::uint64_t contract = 0;
  const CallSpecType* request = nullptr;
};

// An entry as a registered type makes it: the identity, and the function that builds the kernel.
struct EntryPlan {
  BuildIdentity identity;
  std::function<std::unique_ptr<Kernel>()> build;
};

// An implementation, erased. `kernel_type<K>()` makes one from a class; a plugin for another
// language fills one by hand. Everything in it is checked when an op that uses it is constructed.
struct KernelType {
  std::string class_name;
  bool is_kernel = false;      // derives from Kernel
  std::string interface_type;  // type name of the interface it derives from; empty: none
  std::uint64_t contract = 0;  // that interface's contract, as this class was compiled against it
  bool takes_forward =
      true;  // false: its forward or another method does not take the interface's arguments
  std::vector<DeviceType> devices;
  std::vector<int> supported_archs;
  bool general = false;
  std::vector<std::string> preferred_over;
  Refusal (*refusal)(CallRef call) = nullptr;
  EntryPlan (*entry_for)(CallRef call) = nullptr;
  // The kernel as a pointer to its interface, for an op that knows the interface.
  const void* (*as_interface)(const Kernel* kernel) = nullptr;
};

// An interface of an op under the name it is asked by.
template <std::size_t N>
struct FixedName {
  char text[N]{};
  consteval FixedName(const char (&name)[N]) {  // NOLINT(google-explicit-constructor): a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};
template <FixedName Name, class I>
struct Named {
  using Interface = I;
  static constexpr std::string_view name = Name.view();
};
template <class... NamedInterfaces>
struct Interfaces {};

namespace registry_detail {
template <class K>
concept HasInterface = requires {
  typename K::Interface;
  K::interface_name;
};

template <class K, class I, class S>
EntryPlan plan_entry(const S& call) {
  if constexpr (requires { K::entry_for(call); }) {
    static_assert(std::same_as<decltype(K::entry_for(call)), Entry<K>>,
                  "entry_for must return Entry<this class>: an inherited one would build the base "
                  "class under this key");
    const Entry<K> entry = K::entry_for(call);
    return {entry.identity(), entry.build_function()};
  } else {
    static_assert(std::is_constructible_v<K, const S&>,
                  "without entry_for an implementation is built from the whole call spec: add "
                  "entry_for or that constructor");
    const Entry<K> entry(call);
    return {entry.identity(), entry.build_function()};
  }
}

template <class I, class... N>
consteval int count(Interfaces<N...>) {
  return (0 + ... + std::is_base_of_v<typename N::Interface, I>);
}
template <class I, class... N>
consteval int index_of(Interfaces<N...>) {
  int index = -1, at = 0;
  ((std::is_same_v<typename N::Interface, I> ? (void)(index = at) : void(), ++at), ...);
  return index;
}
template <class... N>
std::vector<InterfaceType> interface_types(Interfaces<N...>) {
  return {InterfaceType{std::string(N::name), std::string(N::Interface::interface_name),
                        N::Interface::contract(),
                        &call_spec_type<typename N::Interface::Request>()}...};
}
template <class... N>
consteval bool check_requests(Interfaces<N...>) {
  return (check_call_spec<typename N::Interface::Request>() && ...);
}
}  // namespace registry_detail

// Describes class K. Never fails: what is wrong with K is found when an op that uses it is
// constructed. (In-tree code registers through `Registry::add`, which refuses at compile time.)
template <class K>
KernelType kernel_type() {
  KernelType type;
  type.class_name = std::string(type_name_of<K>());
  type.is_kernel = std::derived_from<K, Kernel>;
  type.takes_forward = !std::is_abstract_v<K>;
  if constexpr (registry_detail::HasInterface<K>) {
    using I = typename K::Interface;
    using S = typename I::Request;
    type.interface_type = std::string(I::interface_name);
    type.contract = I::contract();
    if constexpr (std::derived_from<K, Kernel>) {
      type.devices.assign(K::devices.begin(), K::devices.end());
      type.supported_archs.assign(K::supported_archs.begin(), K::supported_archs.end());
      type.general = K::general;
      for (std::string_view key : K::preferred_over) type.preferred_over.emplace_back(key);
      type.refusal = [](CallRef call) -> Refusal {
        return K::refusal(*static_cast<const S*>(call.data));
      };
      if constexpr (!std::is_abstract_v<K>) {
        type.entry_for = [](CallRef call) {
          return registry_detail::plan_entry<K, I>(*static_cast<const S*>(call.data));
        };
        type.as_interface = [](const Kernel* k) -> const void* {
          return static_cast<const I*>(static_cast<const K*>(k));
        };
      }
    }
  }
  return type;
}

// The reference of an op: plain host code in double. Inputs hold contiguous doubles (nullptr data:
// not passed), as do the outputs it fills; inputs that the op writes in place are filled too.
// `dtype` is the one the op's tensor has, for a reference whose op rounds on the way (round_to).
struct HostTensor {
  Dims shape;
  double* data = nullptr;
  DType dtype = DType::float64;
};
// `value` as the nearest element of `dtype`, ties to even.
KILN_EXPORT double round_to(DType dtype, double value);
using Reference = std::function<absl::Status(
    const ParamValues& params, const ParamValues& execution_params,
    std::span<const HostTensor> inputs, std::span<const HostTensor> outputs)>;

// Flops and bytes of a call, each input and output counted once.
struct Roofline {
  double flops = 0;
  double bytes = 0;
};

// An op, erased.
struct OpType {
  Signature signature;
  std::vector<InterfaceType> interfaces;  // none: a composite
  std::function<absl::StatusOr<std::unique_ptr<Op>>(const ParamValues& params,
                                                    const OpOptions& options)>
      create;
};

struct KernelRow {
  std::string op;
  std::string key;
  KernelType type;
  std::string origin;  // "in-tree", "built-in cpu backend", a plugin's file
};

// What families and plugins register: ops, implementations, targets, device types, sources,
// references. Filling one compiles nothing and probes no device. A plugin is given an empty one: it
// is committed whole when the plugin's function returns, and dropped whole when it fails. One
// thread at a time.
class KILN_EXPORT Registry {
 public:
  explicit Registry(std::string origin = "in-tree");
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;
  ~Registry();

  // Adds op class OpT (its signature(), Interfaces and create_from) and checks its interfaces at
  // compile time.
  template <class OpT>
  void add_op() {
    static_assert(registry_detail::check_requests(typename OpT::Interfaces{}));
    add_op_type({OpT::signature(), registry_detail::interface_types(typename OpT::Interfaces{}),
                 [](const ParamValues& params,
                    const OpOptions& options) -> absl::StatusOr<std::unique_ptr<Op>> {
                   absl::StatusOr<std::unique_ptr<OpT>> op = OpT::create_from(params, options);
                   if (!op.ok()) return op.status();
                   return std::unique_ptr<Op>(*std::move(op));
                 }});
  }

  // Adds class K as implementation `key` of OpT; what can be wrong with K does not compile.
  template <class OpT, class K>
  void add(std::string key) {  // NOLINT(performance-unnecessary-value-param): it is moved
    constexpr int interfaces = registry_detail::count<K>(typename OpT::Interfaces{});
    static_assert(interfaces > 0, "keys implement none of its kernel interfaces");
    static_assert(interfaces < 2, "one implementation belongs to one interface");
    static_assert(std::derived_from<K, Kernel>,
                  "does not implement <Interface>: derive from Kernel as well");
    static_assert(!std::is_abstract_v<K>,
                  "forward does not take <Interface>'s arguments, or a method is not implemented");
    static_assert(!K::general || K::preferred_over.empty(),
                  "a general implementation declares no preference");
    if constexpr (interfaces == 1 && std::derived_from<K, Kernel> && !std::is_abstract_v<K>) {
      register_kernel_type(std::string(OpT::signature().op), std::move(key), kernel_type<K>());
    }
  }

  void add_op_type(OpType type);
  void add_reference(std::string op, Reference reference);
  void add_sources(const SourceTable& sources);
  void register_kernel_type(std::string op, std::string key, KernelType type);
  void register_device_support(std::shared_ptr<DeviceSupport> support);
  void register_detector(std::string target, Detect detect);
  void register_kernel_builder(std::string op, std::string target, BuildTargetKernel build);

  struct Contents;
  const Contents& contents() const { return *contents_; }

 private:
  std::unique_ptr<Contents> contents_;
};

}  // namespace kiln::inline v1

#endif  // KILN_REGISTRY_H_
