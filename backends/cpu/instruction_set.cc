#include "instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kiln::cpu {

#if defined(__x86_64__)
namespace {

struct CpuidWords {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidWords cpuid(unsigned leaf) {
  CpuidWords words;
  __get_cpuid(leaf, &words.eax, &words.ebx, &words.ecx,
              &words.edx);  // leaves zeros when there is no such leaf
  return words;
}

bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

// Bits that __builtin_cpu_supports does not know in every compiler we build with.
constexpr unsigned kCmpxchg16b = 1u << 13, kMovbe = 1u << 22, kF16c = 1u << 29;  // leaf 1, ecx
constexpr unsigned kLahf = 1u << 0, kLzcnt = 1u << 5;  // leaf 0x80000001, ecx

}  // namespace

std::string_view detect_instruction_set() {
  // These also ask the system whether it saves the wide registers.
  __builtin_cpu_init();
  const unsigned basic = cpuid(1).ecx;
  const unsigned extended = cpuid(0x80000001u).ecx;
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("popcnt") && has(basic, kCmpxchg16b) &&
                  has(extended, kLahf);
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
                  has(basic, kMovbe | kF16c) && has(extended, kLzcnt);
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
}
#elif defined(__aarch64__)
std::string_view detect_instruction_set() { return "armv8-a"; }
#else
#error "the CPU backend knows x86-64 and AArch64"
#endif

}  // namespace kiln::cpu
