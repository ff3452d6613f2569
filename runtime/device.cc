#include <kiln/device.h>

#include "base/mutex.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/str_format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <optional>

namespace kiln::inline v1 {
namespace {

constexpr std::size_t kMaxNameLength = 32;
constexpr int kMaxNames = 250;  // ids are one byte; a few are kept back for markers

// The names, in order of id. Written only at the end, before `size` grows, and never changed after:
// so whoever sees a size may read that many names without a lock. Lives for the whole process and
// needs no destructor, because device types are used by other objects' destructors.
class NameTable {
 public:
  constexpr NameTable() {
    store(0, "cuda");
    store(1, "cpu");
  }

  std::string_view at(int id) const {
    return id < size_.load(std::memory_order_acquire) ? view(id) : "invalid";
  }

  std::optional<int> find(std::string_view name) const {
    const int size = size_.load(std::memory_order_acquire);
    for (int id = 0; id < size; ++id) {
      if (view(id) == name) return id;
    }
    return std::nullopt;
  }

  // nullopt when the table is full.
  std::optional<int> add(std::string_view name) {
    MutexLock lock(mutex_);
    if (auto id = find(name)) return id;  // another thread was faster
    const int id = size_.load(std::memory_order_relaxed);
    if (id == kMaxNames) return std::nullopt;
    store(id, name);
    size_.store(id + 1, std::memory_order_release);
    return id;
  }

 private:
  struct Name {
    std::array<char, kMaxNameLength> text{};
    std::uint8_t length = 0;
  };

  std::string_view view(int id) const {
    const Name& name = names_[static_cast<std::size_t>(id)];
    return {name.text.data(), name.length};
  }

  constexpr void store(int id, std::string_view text) {
    Name& name = names_[static_cast<std::size_t>(id)];
    for (std::size_t i = 0; i < text.size(); ++i) name.text[i] = text[i];
    name.length = static_cast<std::uint8_t>(text.size());
  }

  std::array<Name, kMaxNames> names_{};
  std::atomic<int> size_{2};
  Mutex mutex_;
};

NameTable& names() {
  static NameTable* const table = new NameTable;  // never destroyed
  return *table;
}

bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

bool is_device_type_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  for (char c : name) {
    if (!is_name_char(c)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<DeviceType> DeviceType::named(std::string_view name) {
  if (!is_device_type_name(name)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "device type: must be 1 to %d lower-case letters, digits or '_': got \"%s\"",
        kMaxNameLength, name));
  }
  std::optional<int> id = names().find(name);
  if (!id) id = names().add(name);
  if (!id) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "device type: at most %d names can be known: got one more, \"%s\"", kMaxNames, name));
  }
  return DeviceType(static_cast<std::uint8_t>(*id));
}

std::string_view DeviceType::name() const { return names().at(id_); }

std::string to_string(const Device& device) {
  return absl::StrFormat("%s:%d", device.type.name(), device.index);
}

absl::StatusOr<Device> parse_device(std::string_view text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrFormat(
        "device: must be a device type with an optional index from 0 to 254, such as \"cuda:0\" "
        "or \"cpu\": got \"%s\"",
        text));
  };
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (!is_device_type_name(name)) return wrong();
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const char* const end = digits.data() + digits.size();
    const auto [parsed_to, error] = std::from_chars(digits.data(), end, index);
    const bool leading_zero = digits.size() > 1 && digits[0] == '0';
    if (error != std::errc() || parsed_to != end || leading_zero) return wrong();
    if (index < 0 || index > 254) return wrong();
  }
  Device device;
  KILN_ASSIGN_OR_RETURN(device.type, DeviceType::named(name));
  device.index = static_cast<std::uint8_t>(index);
  return device;
}

std::string to_string(const DeviceFacts& facts) {
  if (facts.arch == 0) {
    return absl::StrFormat("%d threads, calibrated as %s", facts.sm_count, facts.calibration);
  }
  return absl::StrFormat(
      "arch %d, %d multiprocessors, %d bytes of shared memory a block, calibrated as %s",
      facts.arch, facts.sm_count, facts.smem_budget, facts.calibration);
}

}  // namespace kiln::inline v1
