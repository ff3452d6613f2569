#ifndef KILN_TESTS_SUPPORT_ARTIFACTS_H_
#define KILN_TESTS_SUPPORT_ARTIFACTS_H_

#include "cache/artifact.h"

#include <cstdint>
#include <memory>
#include <string>

namespace kiln::testing {

// An artifact as a build makes it; another one for each `seed`. The image holds bytes of all
// values.
inline cache::Artifact make_artifact(int seed, std::size_t image_bytes = 64) {
  cache::Artifact out;
  out.source_fields = {{"source", "__global__ void k" + std::to_string(seed) + "() {}\n"},
                       {"headers", std::string("device/dtype.cuh\0#pragma once", 29)}};
  out.compiler_fields = {{"compiler", "nvrtc"}, {"target", "sm_90a"}};
  out.key = {cache::hash_fields(out.source_fields), cache::hash_fields(out.compiler_fields)};
  out.kind = "cubin";
  out.metadata = R"({"kernels":[{"name":"k","registers":32}]})";
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 2654435761u + 1;
  for (std::size_t i = 0; i < image_bytes; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    out.image += static_cast<char>(state >> 56);
  }
  return out;
}

inline std::shared_ptr<const cache::Artifact> share(cache::Artifact artifact) {
  return std::make_shared<const cache::Artifact>(std::move(artifact));
}

inline bool same_artifact(const cache::Artifact& a, const cache::Artifact& b) {
  return a.key == b.key && a.source_fields == b.source_fields &&
         a.compiler_fields == b.compiler_fields && a.kind == b.kind && a.metadata == b.metadata &&
         a.image == b.image;
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_ARTIFACTS_H_
