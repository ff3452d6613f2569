#include "cli/rebuild.h"

namespace kiln::cli {

CompileRequest request_of(const cache::Artifact& artifact) {
  constexpr std::string_view kHeader = "header ";
  CompileRequest request;
  for (const auto& [name, value] : artifact.source_fields) {
    if (name == "source_name")
      request.source_name = value;
    else if (name == "source")
      request.source = value;
    else if (name == "target")
      request.target = value;
    else if (name == "define")
      request.defines.push_back(value);
    else if (name == "option")
      request.options.push_back(value);
    else if (name == "kernel")
      request.kernels.push_back(value);
    else if (name.starts_with(kHeader))
      request.headers.emplace_back(name.substr(kHeader.size()), value);
  }
  return request;
}

absl::StatusOr<const Compiler*> compiler_for(Runtime& runtime, std::string_view target) {
  const bool is_cuda = target.starts_with("sm_") || target.starts_with("compute_");
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support,
                        runtime.device_support(is_cuda ? DeviceType::cuda() : DeviceType::cpu()));
  return &support->compiler();
}

}  // namespace kiln::cli
