#ifndef KILN_BACKENDS_CPU_INSTRUCTION_SET_H_
#define KILN_BACKENDS_CPU_INSTRUCTION_SET_H_

#include <array>
#include <string_view>

namespace kiln::cpu {

// The instruction sets that kernels are built for, by the name that -march takes. The levels of the
// x86-64 psABI and not single features: machines of a fleet then share artifacts.
inline constexpr auto kInstructionSets =
    std::to_array<std::string_view>({"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"});

// The best of them that this processor and its system can run.
std::string_view detect_instruction_set();

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_INSTRUCTION_SET_H_
