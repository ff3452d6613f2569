#include "jit/ptxas_log.h"

#include <algorithm>
#include <charconv>

namespace kiln::jit {
namespace {

// The number right before `unit`, as in "8 bytes stack frame"; -1 when the line has none.
std::int64_t number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == line.npos) return -1;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t value = -1;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

std::string_view between(std::string_view line, std::string_view open, char close) {
  const std::size_t begin = line.find(open);
  if (begin == line.npos) return {};
  line.remove_prefix(begin + open.size());
  return line.substr(0, line.find(close));
}

void read_line(std::string_view line, std::vector<KernelInfo>& kernels, bool& in_kernel) {
  if (const std::string_view name = between(line, "Compiling entry function '", '\'');
      !name.empty()) {
    kernels.push_back({.name = std::string(name)});
    in_kernel = true;
    return;
  }
  if (const std::string_view name = between(line, "Function properties for ", '\n');
      !name.empty()) {
    in_kernel = !kernels.empty() && kernels.back().name == name;
    return;
  }
  if (!in_kernel || kernels.empty()) return;
  KernelInfo& kernel = kernels.back();
  if (const std::int64_t stack = number_before(line, " bytes stack frame"); stack >= 0) {
    kernel.stack_bytes = stack;
    kernel.spill_bytes = std::max<std::int64_t>(0, number_before(line, " bytes spill stores")) +
                         std::max<std::int64_t>(0, number_before(line, " bytes spill loads"));
  }
  if (const std::int64_t registers = number_before(line, " registers"); registers >= 0) {
    kernel.registers = registers;
    kernel.static_smem_bytes = std::max<std::int64_t>(0, number_before(line, " bytes smem"));
  }
}

}  // namespace

PtxasLog parse_ptxas_log(std::string_view log) {
  PtxasLog result;
  bool in_kernel = false;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == log.npos ? log.size() : end + 1);
    if (line.starts_with("ptxas info") || line.starts_with("ptxas         .")) {
      read_line(line, result.kernels, in_kernel);
    } else if (!line.empty() || !result.rest.empty()) {
      result.rest.append(line).push_back('\n');
    }
  }
  while (result.rest.ends_with('\n')) result.rest.pop_back();
  return result;
}

}  // namespace kiln::jit
