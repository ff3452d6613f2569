#ifndef KILN_RUNTIME_REGISTRY_CONTENTS_H_
#define KILN_RUNTIME_REGISTRY_CONTENTS_H_

#include <kiln/registry.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

struct DetectorRow {
  std::string target;
  Detect detect;
  std::string origin;
};
struct BuilderRow {
  std::string op;
  std::string target;
  BuildTargetKernel build;
  std::string origin;
};

// What has been registered, in order; nothing in it is checked against anything else.
struct Registry::Contents {
  std::string origin;
  std::vector<OpType> ops;
  std::vector<std::pair<std::string, Reference>> references;
  std::vector<SourceTable> sources;
  std::vector<KernelRow> kernels;
  std::vector<std::shared_ptr<DeviceSupport>> supports;
  std::vector<DetectorRow> detectors;
  std::vector<BuilderRow> builders;
};

}  // namespace kiln::inline v1

#endif  // KILN_RUNTIME_REGISTRY_CONTENTS_H_
