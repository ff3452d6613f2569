#include "jit/engine.h"
#include "jit/hermetic.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::jit {

struct Sources::Impl {
  std::string folder;
  mutable std::mutex mutex;  // guards all below
  SourceTable table;
  std::map<std::string, SharedText, std::less<>> texts;  // what was read last under each name

  // `bytes` as the text that all share.
  SharedText share(std::string_view name, std::string_view bytes) {
    auto [row, is_new] = texts.try_emplace(std::string(name));
    if (is_new || row->second != bytes) row->second = bytes;
    return row->second;
  }
};

namespace {

std::string_view leaf_of(std::string_view name) { return name.substr(name.rfind('/') + 1); }

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

// Up to three known names that whoever asked for `name` may have meant: the same file elsewhere,
// else the longest beginning in common.
std::vector<std::string> nearby(const SourceTable& table, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, bytes] : table) names.push_back(known);
  const auto closeness = [name](const std::string& known) {
    return std::pair(leaf_of(known) == leaf_of(name), common_prefix(known, name));
  };
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return closeness(a) > closeness(b);
  });
  if (names.size() > 3) names.resize(3);
  return names;
}

}  // namespace

Sources::Sources(std::string override_folder) : impl_(std::make_unique<Impl>()) {
  impl_->folder = std::move(override_folder);
}

Sources::~Sources() = default;

absl::Status Sources::add(const SourceTable& table) {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, bytes] : table) {  // all or nothing
    const auto known = impl_->table.find(name);
    if (known != impl_->table.end() && known->second != bytes) {
      return absl::AlreadyExistsError(
          absl::StrFormat("source table: a name must have one content: '%s' is known with %d bytes "
                          "and was added with other %d",
                          name, known->second.size(), bytes.size()));
    }
  }
  impl_->table.insert(table.begin(), table.end());
  return absl::OkStatus();
}

absl::StatusOr<SharedText> Sources::read(std::string_view name) const {
  KILN_RETURN_IF_ERROR(check_source_name(name));
  if (!impl_->folder.empty()) {
    const std::filesystem::path path = std::filesystem::path(impl_->folder) / std::string(name);
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
      std::ifstream file(path, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      if (file) {
        const std::lock_guard lock(impl_->mutex);
        return impl_->share(name, text);
      }
      return absl::UnavailableError(absl::StrFormat(
          "source '%s': must be readable in the override folder: %s", name, path.string()));
    }
  }
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->table.find(name);
  if (found != impl_->table.end()) return impl_->share(name, found->second);
  const std::vector<std::string> known = nearby(impl_->table, name);
  return absl::NotFoundError(absl::StrFormat(
      "source '%s': must be an embedded source%s; %s", name,
      impl_->folder.empty() ? std::string() : " or a file under " + impl_->folder,
      known.empty() ? "none is known" : "known nearby: " + absl::StrJoin(known, ", ")));
}

}  // namespace kiln::jit
