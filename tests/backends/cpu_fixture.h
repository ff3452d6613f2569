#ifndef KILN_TESTS_BACKENDS_CPU_FIXTURE_H_
#define KILN_TESTS_BACKENDS_CPU_FIXTURE_H_

#include <kiln/sources.h>

#include "backends/cpu/cpu_support.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln {
void add_sources_kiln_cpu_objects(SourceTable& table);  // generated: the backend's own sources
}  // namespace kiln

namespace kiln::testing {

inline const Stream kCpuStream{{DeviceType::cpu(), 0}, nullptr};

inline std::string backend_source(const std::string& name) {
  SourceTable table;
  add_sources_kiln_cpu_objects(table);
  return std::string(table.at("backends/cpu/kernels/" + name));
}

// Compiles `body`, which may use block.hpp, with the support's own compiler.
inline absl::StatusOr<CompileResult> compile_for_cpu(cpu::CpuSupport& support,
                                                     const std::string& body,
                                                     std::vector<std::string> kernels) {
  CompileRequest request{.source_name = "kernel.cpp",
                         .source = "#include \"block.hpp\"\n" + body,
                         .headers = {{"block.hpp", backend_source("block.hpp")}},
                         .kernels = std::move(kernels)};
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support.facts(0));
  KILN_ASSIGN_OR_RETURN(request.target, support.target_for(facts, false));
  return support.compiler().compile(request);
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_BACKENDS_CPU_FIXTURE_H_
