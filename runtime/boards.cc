#include "runtime/boards.h"

#include "jit/target.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {
namespace {

// Memory is what the driver reports, a few percent below the number on the box.
constexpr Board kBoards[] = {
    {"a100", 80, 108, 38, 81, "A100", 312},
    {"a30", 80, 56, 22, 25, "A30", 165},
    {"a10", 86, 72, 21, 25, "A10", 125},
    {"a10g", 86, 80, 21, 25, "A10G"},
    {"a40", 86, 84, 43, 49, "A40", 150},
    {"rtxa6000", 86, 84, 46, 49, "RTX A6000", 155},
    {"rtx3090", 86, 82, 22, 25, "RTX 3090"},
    {"l4", 89, 58, 21, 25, "L4", 121},
    {"l40", 89, 142, 43, 49, "L40", 181},
    {"l40s", 89, 142, 43, 49, "L40S", 362},
    {"rtx4090", 89, 128, 22, 25, "RTX 4090"},
    {"h100", 90, 132, 78, 81, "H100", 989},
    {"h100-pcie", 90, 114, 78, 81, "H100 PCIe", 756},
    {"h100-nvl", 90, 132, 91, 95, "H100 NVL", 835},
    {"h20", 90, 78, 93, 98, "H20", 148},
    {"gh200", 90, 132, 93, 145, "GH200", 989},
    {"h200", 90, 132, 137, 145, "H200", 989},
    {"h200-nvl", 90, 132, 137, 145, "H200 NVL", 835},
    {"b200", 100, 148, 174, 193, "B200", 2250},
    {"gb200", 100, 152, 180, 193, "GB200", 2500},
    {"rtx5090", 120, 170, 30, 33, "RTX 5090"},
    {"rtxpro6000", 120, 188, 93, 98, "RTX PRO 6000"},
};

constexpr std::pair<int, std::string_view> kReferenceBoards[] = {
    {80, "a100"}, {86, "a10"}, {89, "l40s"}, {90, "h200"}, {100, "b200"}, {120, "rtx5090"},
};

// Words of a device name: "NVIDIA H100 PCIe", "NVIDIA A100-SXM4-80GB".
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" -"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

// How many words of the board's pattern the name holds; 0 when one is missing. Whole words, so that
// "A10" does not take an A100.
std::size_t match(const Board& board, const std::vector<std::string_view>& name) {
  const std::vector<std::string_view> wanted = words_of(board.device_name);
  for (std::string_view word : wanted) {
    bool found = false;
    for (std::string_view have : name) found = found || lower(have) == lower(word);
    if (!found) return 0;
  }
  return wanted.size();
}

// The board whose pattern fits best: "H100 PCIe" is more than "H100".
const Board* find_by_device_name(const std::vector<std::string_view>& name, int arch) {
  const Board* best = nullptr;
  std::size_t best_words = 0;
  for (const Board& board : kBoards) {
    if (board.arch != arch) continue;
    const std::size_t words = match(board, name);
    if (words > best_words) {
      best = &board;
      best_words = words;
    }
  }
  return best;
}

// "1g.18gb" of "NVIDIA H200 MIG 1g.18gb"; nullopt for a whole device.
std::optional<std::string> mig_profile(const std::vector<std::string_view>& name) {
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == "MIG") return lower(name[i + 1]);
  }
  return std::nullopt;
}

const Board* find_by_name(std::string_view name) {
  for (const Board& board : kBoards) {
    if (board.name == name) return &board;
  }
  return nullptr;
}

std::string known() {
  std::string text = "boards";
  const char* separator = " ";
  for (const Board& board : kBoards) {
    text += separator;
    text += board.name;
    separator = ", ";
  }
  text += "; archs";
  separator = " ";
  for (const auto& [arch, name] : kReferenceBoards) {
    text += absl::StrFormat("%s%d", separator, arch);
    separator = ", ";
  }
  return text;
}

}  // namespace

std::span<const Board> boards() { return kBoards; }

std::int64_t smem_budget_of(int arch) {
  constexpr std::int64_t kKib = 1024;
  switch (arch) {
    case 80:
      return 163 * kKib;
    case 86:
    case 89:
    case 120:
      return 99 * kKib;
    case 90:
    case 100:
      return 227 * kKib;
    default:
      return 0;
  }
}

DeviceFacts facts_of(const Board& board) {
  return {.arch = board.arch,
          .sm_count = board.sm_count,
          .smem_budget = smem_budget_of(board.arch),
          .calibration = std::string(board.name)};
}

absl::StatusOr<DeviceFacts> board_facts(std::string_view name_or_arch) {
  if (const Board* board = find_by_name(name_or_arch)) return facts_of(*board);
  if (const auto target = jit::parse_target(name_or_arch); target.ok()) {
    return reference_facts(target->arch);
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "board: no board or arch is called \"%s\"; known are %s", name_or_arch, known()));
}

absl::StatusOr<DeviceFacts> reference_facts(int arch) {
  for (const auto& [known_arch, name] : kReferenceBoards) {
    if (known_arch == arch) return facts_of(*find_by_name(name));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "board: there is no reference board for arch %d; known are %s", arch, known()));
}

double peak_flops(std::string_view board, bool bytes) {
  const Board* const known = find_by_name(board);
  return known == nullptr ? 0 : known->matrix_tflops * 1e12 * (bytes ? 2 : 1);
}

std::string calibrate(std::string_view device_name, std::uint64_t memory_bytes, int sm_count,
                      int arch) {
  const std::vector<std::string_view> name = words_of(device_name);
  const std::string other = absl::StrFormat("sm_%d-%dsm", arch, sm_count);
  const Board* board = find_by_device_name(name, arch);
  if (board == nullptr) return other;
  if (const auto profile = mig_profile(name)) {
    return absl::StrFormat("%s-mig-%s", board->name, *profile);
  }
  const double memory_gib = static_cast<double>(memory_bytes) / (1024.0 * 1024.0 * 1024.0);
  const bool fits = board->sm_count == sm_count && memory_gib >= board->memory_min_gib &&
                    memory_gib <= board->memory_max_gib;
  return fits ? std::string(board->name) : other;
}

}  // namespace kiln
