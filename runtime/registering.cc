#include "runtime/registering.h"

#include "runtime/messages.h"

#include <absl/strings/str_format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace kiln::internal {
namespace {

thread_local Registry* staged_by_this_thread = nullptr;

absl::Status refused(absl::StatusCode code, const Registry::Contents& staged,
                     const std::string& what) {
  return with_kind(
      absl::Status(code, absl::StrFormat("%s: %s: %s", kBackendError, staged.origin, what)),
      ErrorKind::backend_error);
}
absl::Status already(const Registry::Contents& staged, const std::string& what) {
  return refused(absl::StatusCode::kAlreadyExists, staged, what);
}
absl::Status malformed(const Registry::Contents& staged, const std::string& what) {
  return refused(absl::StatusCode::kInvalidArgument, staged, what);
}

// (op, key) or (op, target) -> who had it first.
using Owners = std::map<std::pair<std::string, std::string>, std::string>;

absl::Status check_op_names(const Runtime::Impl& impl, const Registry::Contents& staged)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl.mutex) {
  std::set<std::string> names;
  for (const auto& [name, type] : impl.ops) names.insert(name);
  for (const OpType& type : staged.ops) {
    KILN_RETURN_IF_ERROR(check_signature(type.signature));
    if (!names.insert(type.signature.op).second)
      return already(staged, "op " + type.signature.op + " is registered already");
  }
  const auto known = [&](const std::string& op, const std::string& what) {
    if (names.count(op) > 0) return absl::OkStatus();
    return refused(absl::StatusCode::kNotFound, staged,
                   absl::StrFormat("%s is for an op that nobody registered: got \"%s\"", what, op));
  };
  for (const KernelRow& row : staged.kernels)
    KILN_RETURN_IF_ERROR(known(row.op, "implementation " + row.key));
  for (const BuilderRow& row : staged.builders)
    KILN_RETURN_IF_ERROR(known(row.op, "the builder of target " + row.target));
  return absl::OkStatus();
}

absl::Status check_kernels(const Runtime::Impl& impl, const Registry::Contents& staged)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl.mutex) {
  Owners owners;
  // A key of the tree may be taken here: that clash is reported when an op is constructed ("reuse
  // keys it has"), where it names both.
  for (const auto& row : impl.kernels) {
    if (row->origin != "in-tree") owners.emplace(std::pair(row->op, row->key), row->origin);
  }
  for (const KernelRow& row : staged.kernels) {
    if (row.key.empty()) return malformed(staged, "an implementation of " + row.op + " has no key");
    const auto [at, fresh] = owners.emplace(std::pair(row.op, row.key), staged.origin);
    if (!fresh) {
      return already(staged, absl::StrFormat("%s has an implementation %s already, from %s", row.op,
                                             row.key, at->second));
    }
  }
  return absl::OkStatus();
}

absl::Status check_targets(const Runtime::Impl& impl, const Registry::Contents& staged)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl.mutex) {
  const auto check_name = [&](const std::string& target) {
    if (!target.empty() && target != kBuiltin) return absl::OkStatus();
    return malformed(staged, absl::StrFormat("a target's name must not be empty or %s: got \"%s\"",
                                             std::string(kBuiltin), target));
  };
  Owners builders;
  for (const auto& row : impl.builders)
    builders.emplace(std::pair(row->op, row->target), row->origin);
  for (const BuilderRow& row : staged.builders) {
    KILN_RETURN_IF_ERROR(check_name(row.target));
    if (row.build == nullptr) {
      return malformed(staged, absl::StrFormat("target %s registers a builder for %s that is no "
                                               "function",
                                               row.target, row.op));
    }
    const auto [at, fresh] = builders.emplace(std::pair(row.op, row.target), staged.origin);
    if (!fresh) {
      return already(staged, absl::StrFormat("target %s has a builder for %s already, from %s",
                                             row.target, row.op, at->second));
    }
  }
  std::map<std::string, std::string> detectors;
  for (const auto& row : impl.detectors) detectors.emplace(row->target, row->origin);
  for (const DetectorRow& row : staged.detectors) {
    KILN_RETURN_IF_ERROR(check_name(row.target));
    if (row.detect == nullptr) {
      return malformed(staged, absl::StrFormat("target %s registers a detector that is no function",
                                               row.target));
    }
    const auto [at, fresh] = detectors.emplace(row.target, staged.origin);
    if (!fresh) {
      return already(staged, absl::StrFormat("target %s has a detector already, from %s",
                                             row.target, at->second));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_staged(const Runtime::Impl& impl, const Registry::Contents& staged) {
  KILN_RETURN_IF_ERROR(check_op_names(impl, staged));
  KILN_RETURN_IF_ERROR(check_kernels(impl, staged));
  KILN_RETURN_IF_ERROR(check_targets(impl, staged));
  std::set<std::string> types;
  for (const auto& [name, support] : impl.supports) types.insert(name);
  for (const auto& support : staged.supports) {
    if (support == nullptr) return malformed(staged, "a device support must not be null");
    const std::string name(support->type().name());
    if (!types.insert(name).second)
      return already(staged, "device type " + name + " is registered already");
  }
  return absl::OkStatus();
}

Registry* staged_here() { return staged_by_this_thread; }
StagingScope::StagingScope(Registry& registry)
    : before_(std::exchange(staged_by_this_thread, &registry)) {}
StagingScope::~StagingScope() { staged_by_this_thread = before_; }

}  // namespace kiln::internal

namespace kiln::inline v1 {
namespace {

template <class Fill>
absl::Status register_now(const Fill& fill) {
  if (Registry* staged = internal::staged_here()) {
    fill(*staged);
    return absl::OkStatus();
  }
  Registry own("this process");
  fill(own);
  return Runtime::instance().commit(std::move(own));
}

}  // namespace

absl::Status register_kernel_type(std::string op, std::string key, KernelType type) {
  return register_now([&](Registry& registry) {
    registry.register_kernel_type(std::move(op), std::move(key), std::move(type));
  });
}

absl::Status register_detector(std::string target, Detect detect) {
  return register_now([&](Registry& registry) {
    registry.register_detector(std::move(target), std::move(detect));
  });
}

absl::Status register_kernel_builder(std::string op, std::string target, BuildTargetKernel build) {
  return register_now([&](Registry& registry) {
    registry.register_kernel_builder(std::move(op), std::move(target), std::move(build));
  });
}

absl::Status set_default_target(std::string target) {
  return Runtime::instance().set_default_target(std::move(target));
}

}  // namespace kiln::inline v1
