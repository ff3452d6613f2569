#ifndef KILN_TESTS_SUPPORT_FAMILIES_H_
#define KILN_TESTS_SUPPORT_FAMILIES_H_

#include <kiln/kiln.h>

#include "runtime/call_json.h"
#include "runtime/families.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

// The kernel families that are linked in, by their embedded problems.
namespace kiln::testing {

struct Family {
  friend void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
  std::string name;
  std::string_view problems;  // the text of its problems.jsonl
};
inline std::vector<Family> families_with_problems() {
  static const SourceTable* const table = [] {
    auto* sources = new SourceTable;
    internal::add_family_sources(*sources);
    return sources;
  }();
  constexpr std::string_view kPrefix = "kernel_sources/", kLeaf = "/problems.jsonl";
  std::vector<Family> out;
  for (const auto& [name, text] : *table) {
    if (!name.ends_with(kLeaf)) continue;
    out.push_back({name.substr(kPrefix.size(), name.size() - kPrefix.size() - kLeaf.size()), text});
  }
  return out;
}

// A runtime with the in-tree families and no plugins.
inline RuntimeOptions in_tree_options(std::string cache_dir = "") {
  RuntimeOptions options;
  options.cache_dir = std::move(cache_dir);
  options.load_installed_backends = false;
  return options;
}

inline absl::StatusOr<std::vector<internal::CallLine>> problems_of(Runtime& runtime,
                                                                   const Family& family) {
  return internal::parse_calls(family.problems, family.name + "/problems.jsonl",
                               [&](std::string_view op) -> absl::StatusOr<const Signature*> {
                                 absl::StatusOr<const OpType*> type = runtime.op_type(op);
                                 if (!type.ok()) return type.status();
                                 return &(*type)->signature;
                               });
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_FAMILIES_H_
