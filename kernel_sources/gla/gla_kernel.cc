#include "gla_kernel.h"

#include <absl/strings/str_format.h>

namespace kiln {
namespace {

constexpr std::int64_t kMaxDimK = 256;  // rows of the state: a thread keeps an eighth of them
constexpr std::int64_t kColumns = 32;   // of a block

}  // namespace

Refusal GlaKernel::refusal(const GlaCall& call) {
  if (call.dim_k < 1 || call.dim_k > kMaxDimK) {
    return refuse("serves keys of 1 to ", kMaxDimK, " elements, got ", call.dim_k);
  }
  return serves;
}

GlaCall GlaKernel::facts_of(const GlaCall& call) {
  GlaCall facts = call;
  facts.batch = 1;
  facts.seqlen = 1;
  facts.heads = 1;
  facts.where = {};
  return facts;
}

Program GlaKernel::gla_program(const std::string& name) const {
  Program program;
  program.source = "kernel_sources/gla/" + name + ".cu";
  program.headers = {"kernel_sources/device/dtype.cuh", "kernel_sources/gla/gate.cuh"};
  program.kernels = {name};
  program.constants = {{"DTYPE", facts_.dtype},
                       {"DIM_K", facts_.dim_k},
                       {"DIM_V", facts_.dim_v},
                       {"SCALE", facts_.scale},
                       {"HAS_STATE", facts_.has_initial_state}};
  return program;
}

absl::StatusOr<std::uint32_t> GlaKernel::grid_of(const Tensor& q) const {
  const std::int64_t blocks = q.shape[0] * q.shape[2] * ((facts_.dim_v + kColumns - 1) / kColumns);
  if (blocks <= INT32_MAX) return static_cast<std::uint32_t>(blocks);
  return absl::InvalidArgumentError(absl::StrFormat(
      "gla: heads of all sequences must fit a grid of %d blocks: got %d", INT32_MAX, blocks));
}

}  // namespace kiln
