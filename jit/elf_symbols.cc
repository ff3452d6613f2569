#include "jit/elf_symbols.h"

#include <kiln/status.h>

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>
#include <optional>

namespace kiln::jit {
namespace {

// A copy of the T at `offset`: images come unaligned and from anywhere.
template <typename T>
std::optional<T> read_at(std::string_view image, std::uint64_t offset) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return value;
}

std::string_view string_at(std::string_view image, const Elf64_Shdr& strings, std::uint64_t index) {
  if (strings.sh_offset > image.size() || index >= strings.sh_size) return {};
  std::string_view text = image.substr(strings.sh_offset, strings.sh_size);
  if (index >= text.size()) return {};
  text.remove_prefix(index);
  return text.substr(0, text.find('\0'));
}

std::optional<Elf64_Shdr> section_at(std::string_view image, const Elf64_Ehdr& header,
                                     std::uint64_t index) {
  if (index >= header.e_shnum || header.e_shoff > image.size()) return std::nullopt;
  return read_at<Elf64_Shdr>(image, header.e_shoff + index * sizeof(Elf64_Shdr));
}

void add_functions(std::string_view image, const Elf64_Shdr& table, const Elf64_Shdr& strings,
                   std::vector<std::string>& names) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    if (table.sh_offset > image.size()) return;
    const auto symbol = read_at<Elf64_Sym>(image, table.sh_offset + at);
    if (!symbol) return;
    const unsigned bind = ELF64_ST_BIND(symbol->st_info);
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
        (bind == STB_GLOBAL || bind == STB_WEAK)) {
      names.emplace_back(string_at(image, strings, symbol->st_name));
    }
  }
}

}  // namespace

std::vector<std::string> defined_functions(std::string_view image) {
  std::vector<std::string> names;
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return names;
  }
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = section_at(image, *header, i);
    if (!section) break;
    if (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM) continue;
    if (const auto strings = section_at(image, *header, section->sh_link)) {
      add_functions(image, *section, *strings, names);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

namespace {

// A C++ name as it stands in the source: "k<float>(float*)" of "_Z1kIfEvPT_".
void append_readable(std::string* out, const std::string& name) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  out->append(readable == nullptr ? name : readable);
  std::free(readable);
}

}  // namespace

absl::Status check_kernels(std::string_view source_name, const std::vector<std::string>& kernels,
                           const std::vector<std::string>& functions) {
  std::vector<std::string> missing;
  for (const std::string& kernel : kernels) {
    if (std::find(functions.begin(), functions.end(), kernel) == functions.end())
      missing.push_back(kernel);
  }
  if (missing.empty()) return absl::OkStatus();
  return with_kind(
      absl::InvalidArgumentError(absl::StrFormat(
          "%s: must define every kernel that the program names, as extern \"C\": "
          "missing %s; it has %s",
          source_name, absl::StrJoin(missing, ", "),
          functions.empty() ? "none" : absl::StrJoin(functions, ", ", append_readable))),
      ErrorKind::compile_error);
}

}  // namespace kiln::jit
