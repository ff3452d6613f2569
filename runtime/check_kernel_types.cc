#include "runtime/check_kernel_types.h"

#include "base/log.h"
#include "runtime/messages.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string>

namespace kiln::internal {
namespace {

absl::Status bad_type(const std::string& op, const KernelRow& row, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s (%s, from %s): %s", op, row.key,
                                                    row.type.class_name, row.origin, what));
}

// One registered class against the op's interfaces; the fragments are those of docs/errors.md.
absl::Status check_row(const OpType& type, const KernelRow& row) {
  const std::string& op = type.signature.op;
  const auto interface =
      std::find_if(type.interfaces.begin(), type.interfaces.end(),
                   [&](const InterfaceType& i) { return i.type_name == row.type.interface_type; });
  if (interface == type.interfaces.end()) {
    if (type.interfaces.empty()) {
      return bad_type(
          op, row,
          absl::StrFormat("%s: the op has none; %s", kNoneOfItsInterfaces, kDeclareInterfaces));
    }
    return bad_type(
        op, row,
        absl::StrFormat(
            "%s: it derives from %s; the op's are %s", kNoneOfItsInterfaces,
            row.type.interface_type.empty() ? "none" : row.type.interface_type,
            absl::StrJoin(type.interfaces, ", ", [](std::string* out, const InterfaceType& i) {
              out->append(i.type_name);
            })));
  }
  if (!row.type.is_kernel) {
    return bad_type(op, row,
                    absl::StrFormat("%s %s: it must derive from Kernel as well", kDoesNotImplement,
                                    interface->type_name));
  }
  if (!row.type.takes_forward || row.type.contract != interface->contract) {
    return bad_type(
        op, row,
        absl::StrFormat("%s %s's arguments: %s", kForwardDoesNotTake, interface->type_name,
                        row.type.takes_forward
                            ? "it was built against another version of the interface"
                            : "a method of the interface is not implemented"));
  }
  if (row.type.refusal == nullptr || row.type.entry_for == nullptr ||
      row.type.as_interface == nullptr) {
    return bad_type(op, row, "its refusal, entry_for and as_interface must be given");
  }
  for (const std::string& loser : row.type.preferred_over) {
    if (loser == row.key)
      return bad_type(op, row, absl::StrFormat("%s %s", kPreferenceCycle, loser));
  }
  return absl::OkStatus();
}

// preferred_over names keys of its own interface. In the tree anything else is an error; a backend
// may be written for a tree that has, or had, other keys.
absl::Status check_preferences(const OpType& type, const KernelRow& row,
                               const std::vector<KernelRow>& rows) {
  for (const std::string& loser : row.type.preferred_over) {
    const auto other =
        std::find_if(rows.begin(), rows.end(), [&](const KernelRow& r) { return r.key == loser; });
    if (other != rows.end() && other->type.interface_type == row.type.interface_type) continue;
    const std::string what = absl::StrFormat(
        "%s %s: got %s, which %s", kPreferredUnknown, row.type.interface_type, loser,
        other == rows.end() ? "is not registered" : "is of " + other->type.interface_type);
    absl::Status status = bad_type(type.signature.op, row, what);
    if (other != rows.end() || row.origin == "in-tree") return status;
    log_once(LogLevel::warning, "preferred_over " + row.origin + row.key + loser,
             message_of(status));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_kernel_types(const OpType& type, const std::vector<KernelRow>& rows) {
  for (const KernelRow& row : rows) {
    KILN_RETURN_IF_ERROR(check_row(type, row));
    for (const KernelRow& other : rows) {
      if (&row != &other && row.key == other.key) {
        return bad_type(type.signature.op, other,
                        absl::StrFormat("%s: %s is also from %s", kReuseKeys, row.key, row.origin));
      }
    }
    KILN_RETURN_IF_ERROR(check_preferences(type, row, rows));
  }
  return absl::OkStatus();
}

}  // namespace kiln::internal
