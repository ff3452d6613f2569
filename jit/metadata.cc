#include "jit/metadata.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace kiln::jit {
namespace {

using Json = nlohmann::json;  // objects are std::map: keys come out sorted

constexpr std::array<std::pair<const char*, std::int64_t KernelInfo::*>, 4> kFigures = {{
    {"registers", &KernelInfo::registers},
    {"static_smem_bytes", &KernelInfo::static_smem_bytes},
    {"spill_bytes", &KernelInfo::spill_bytes},
    {"stack_bytes", &KernelInfo::stack_bytes},
}};

absl::Status malformed(std::string_view metadata) {
  return absl::DataLossError(
      absl::StrFormat("artifact metadata: must be an object with a list of kernels: got '%s'",
                      metadata.substr(0, 200)));
}

}  // namespace

std::string make_metadata(const std::vector<KernelInfo>& kernels) {
  Json list = Json::array();
  for (const KernelInfo& kernel : kernels) {
    Json row = {{"name", kernel.name}};
    for (const auto& [name, member] : kFigures) {
      if (kernel.*member >= 0) row[name] = kernel.*member;
    }
    list.push_back(std::move(row));
  }
  // `replace`: a name in another encoding must not throw.
  return Json{{"kernels", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::vector<KernelInfo>> kernel_infos(std::string_view metadata) {
  const Json json = Json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_array())
    return malformed(metadata);
  std::vector<KernelInfo> kernels;
  for (const Json& row : json["kernels"]) {
    if (!row.is_object() || !row.contains("name") || !row["name"].is_string())
      return malformed(metadata);
    KernelInfo& kernel = kernels.emplace_back();
    kernel.name = row["name"].get<std::string>();
    for (const auto& [name, member] : kFigures) {
      if (!row.contains(name)) continue;
      if (!row[name].is_number_integer()) return malformed(metadata);
      kernel.*member = row[name].get<std::int64_t>();
    }
  }
  return kernels;
}

}  // namespace kiln::jit
