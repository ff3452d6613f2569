#include "jit/target.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace kiln::jit {
namespace {

// The archs that Kiln knows; whether a toolkit knows one is asked of the toolkit.
constexpr std::array kArchs = {80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
// The first toolkits for archs that the oldest that Kiln works with (12.8) does not know.
constexpr std::array kNewArchs = {std::pair(103, "12.9"), std::pair(121, "12.9"),
                                  std::pair(110, "13.0")};
constexpr int kFirstArchSpecific = 90;

}  // namespace

std::string target_name(int arch, bool arch_specific) {
  return absl::StrFormat("sm_%d%s", arch, arch_specific && arch >= kFirstArchSpecific ? "a" : "");
}

absl::StatusOr<CudaTarget> parse_target(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("sm_")) digits.remove_prefix(3);
  CudaTarget target;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), target.arch);
  std::string_view rest(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  target.arch_specific = rest == "a";
  const bool known = std::find(kArchs.begin(), kArchs.end(), target.arch) != kArchs.end();
  if (error != std::errc() || !known || !(rest.empty() || rest == "a") ||
      (target.arch_specific && target.arch < kFirstArchSpecific)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("arch: want one of %s (as 90, sm_90 or, from %d on, sm_90a), got '%s'",
                        absl::StrJoin(kArchs, ", "), kFirstArchSpecific, text));
  }
  return target;
}

std::string first_toolkit_of(int arch) {
  if (std::find(kArchs.begin(), kArchs.end(), arch) == kArchs.end()) return "";
  const auto at = std::find_if(kNewArchs.begin(), kNewArchs.end(),
                               [&](const auto& one) { return one.first == arch; });
  return at == kNewArchs.end() ? "12.8" : at->second;
}

}  // namespace kiln::jit
