#ifndef KILN_KERNEL_SOURCES_GLA_GLA_KERNEL_H_
#define KILN_KERNEL_SOURCES_GLA_GLA_KERNEL_H_

#include <kiln/kernel.h>
#include <kiln/ops/gla.h>

#include <cstdint>
#include <string>

namespace kiln {

// What the kernels of this family share. Immutable.
class GlaKernel : public Kernel, public GlaFwdInterface {
 public:
  static constexpr auto supported_archs = archs(80, 86, 89, 90, 100, 120);
  static Refusal refusal(const GlaCall& call);

 protected:
  // The facts of a call that change what is built: sequences, tokens and heads are none.
  static GlaCall facts_of(const GlaCall& call);
  explicit GlaKernel(const GlaCall& facts) : facts_(facts) {}
  // The program of the kernel `name` with the constants of gate.cuh.
  Program gla_program(const std::string& name) const;
  // A block for each head of each sequence and each 32 columns of its state.
  absl::StatusOr<std::uint32_t> grid_of(const Tensor& q) const;

 private:
  GlaCall facts_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GLA_GLA_KERNEL_H_
