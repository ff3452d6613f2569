#include <kiln/registry.h>

#include "runtime/registry_contents.h"

namespace kiln::inline v1 {

Registry::Registry(std::string origin) : contents_(std::make_unique<Contents>()) {
  contents_->origin = std::move(origin);
}
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;
Registry::~Registry() = default;

void Registry::add_op_type(OpType type) { contents_->ops.push_back(std::move(type)); }

void Registry::add_reference(std::string op, Reference reference) {
  contents_->references.emplace_back(std::move(op), std::move(reference));
}

void Registry::add_sources(const SourceTable& sources) { contents_->sources.push_back(sources); }

void Registry::register_kernel_type(std::string op, std::string key, KernelType type) {
  contents_->kernels.push_back({std::move(op), std::move(key), std::move(type), contents_->origin});
}

void Registry::register_device_support(std::shared_ptr<DeviceSupport> support) {
  contents_->supports.push_back(std::move(support));
}

void Registry::register_detector(std::string target, Detect detect) {
  contents_->detectors.push_back({std::move(target), std::move(detect), contents_->origin});
}

void Registry::register_kernel_builder(std::string op, std::string target,
                                       BuildTargetKernel build) {
  contents_->builders.push_back(
      {std::move(op), std::move(target), std::move(build), contents_->origin});
}

}  // namespace kiln::inline v1
