#include <kiln/kernel.h>

#include "base/mutex.h"

#include <algorithm>
#include <map>

namespace kiln::inline v1 {

std::int64_t Config::operator[](std::string_view name) const {
  const auto at =
      std::find_if(values_.begin(), values_.end(), [&](const auto& v) { return v.first == name; });
  return at == values_.end() ? 0 : at->second;
}

void Config::set(std::string_view name, std::int64_t value) {
  const auto at =
      std::find_if(values_.begin(), values_.end(), [&](const auto& v) { return v.first == name; });
  if (at == values_.end())
    values_.emplace_back(std::string(name), value);
  else
    at->second = value;
}

std::string to_string(const Config& config) {
  std::string out;
  for (const auto& [name, value] : config.values()) {
    out += (out.empty() ? "" : " ") + name + "=" + std::to_string(value);
  }
  return out;
}

// What was published: the loaded state in force and those it replaced, which calls in flight may
// still read.
struct Kernel::Owned {
  Mutex mutex;
  std::vector<std::unique_ptr<const Loaded>> loaded ABSL_GUARDED_BY(mutex);
  std::map<int, std::unique_ptr<const Loaded>> sweeps ABSL_GUARDED_BY(mutex);
};

Kernel::~Kernel() { delete owned_.load(std::memory_order_acquire); }

Config Kernel::default_config(const DeviceFacts&) const { return {}; }
std::vector<Config> Kernel::autotune_configs(const DeviceFacts&) const { return {}; }
std::optional<std::vector<double>> Kernel::tuning_input(std::string_view, const TensorSpec&) const {
  return std::nullopt;
}
std::vector<Kernel*> Kernel::kernels() { return {this}; }

bool Kernel::request_tune() {
  tuning_.store(true, std::memory_order_relaxed);
  return tuner_ && tuner_(*this);
}

Config Kernel::config() const {
  const Loaded* last = last_.load(std::memory_order_acquire);
  return last == nullptr ? Config() : last->config;
}

void Kernel::publish(int index, std::unique_ptr<const Loaded> loaded) {
  Owned* owned = owned_.load(std::memory_order_acquire);
  if (owned == nullptr) {
    auto fresh = std::make_unique<Owned>();
    if (owned_.compare_exchange_strong(owned, fresh.get(), std::memory_order_acq_rel))
      owned = fresh.release();
  }
  const Loaded* now = loaded.get();
  if (index >= kSweepIndex) {
    // Only the sweep's own thread launches there, and it waits for its work.
    loaded_[static_cast<std::size_t>(index)].store(now, std::memory_order_release);
    MutexLock lock(owned->mutex);
    owned->sweeps[index] = std::move(loaded);
    return;
  }
  {
    MutexLock lock(owned->mutex);
    owned->loaded.push_back(std::move(loaded));
  }
  last_.store(now, std::memory_order_release);
  loaded_[static_cast<std::size_t>(index)].store(now, std::memory_order_release);
}

absl::Status Kernel::launch_packed(const Loaded& loaded, std::size_t f, const Stream& stream,
                                   const LaunchShape& shape, void** args) const {
  if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) return absl::OkStatus();
  return loaded.support->launch(loaded.functions[f], stream, shape, args);
}

}  // namespace kiln::inline v1
