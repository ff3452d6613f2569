#include "runtime/tune_loading.h"

#include "runtime/guarded.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

namespace kiln::internal {
namespace {

absl::Status only_launches() {
  return absl::FailedPreconditionError("a candidate of a sweep may only launch kernels");
}

// Spills of a few registers cost little; more than this is a candidate that does not fit.
constexpr std::int64_t kSpillSlack = 64;

constexpr std::int64_t kRegistersOfSm = 64 << 10;
constexpr std::int64_t kReservedSmem = 1 << 10;  // of each block, from sm_80 on

struct SmLimits {
  std::int64_t warps, blocks;
};
SmLimits limits_of(int arch) {
  switch (arch) {
    case 86:
      return {48, 16};
    case 89:
    case 120:
      return {48, 24};
    default:
      return {64, 32};
  }
}

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

absl::Status SweepLaunches::launch(void* function, const Stream& stream, const LaunchShape& shape,
                                   void** args) {
  block_threads = std::max(block_threads, shape.block[0] * shape.block[1] * shape.block[2]);
  smem_bytes = std::max(smem_bytes, shape.smem_bytes);
  return real_.launch(function, Stream{real_device(stream.device), stream.handle}, shape, args);
}

absl::StatusOr<std::unique_ptr<LoadedImage>> SweepLaunches::load(int, std::string_view,
                                                                 std::string_view,
                                                                 std::span<const std::string>) {
  return only_launches();
}
absl::Status SweepLaunches::prepare(int, void*, std::uint32_t) { return only_launches(); }
absl::StatusOr<void*> SweepLaunches::allocate(const Stream&, std::size_t) {
  return only_launches();
}
absl::Status SweepLaunches::free(const Stream&, void*) { return only_launches(); }
absl::Status SweepLaunches::copy_to_device(const Stream&, void*, const void*, std::size_t) {
  return only_launches();
}
absl::Status SweepLaunches::copy_to_host(const Stream&, void*, const void*, std::size_t) {
  return only_launches();
}
absl::Status SweepLaunches::copy_on_device(const Stream&, void*, const void*, std::size_t) {
  return only_launches();
}
absl::Status SweepLaunches::fill(const Stream&, void*, std::uint8_t, std::size_t) {
  return only_launches();
}
absl::Status SweepLaunches::synchronize(const Stream&) { return only_launches(); }
absl::StatusOr<Stream> SweepLaunches::create_stream(int) { return only_launches(); }
absl::Status SweepLaunches::destroy_stream(const Stream&) { return only_launches(); }
absl::StatusOr<double> SweepLaunches::time(const Stream&, const std::function<absl::Status()>&) {
  return only_launches();
}

absl::StatusOr<CandidateBuild> begin_build(Runtime::Impl& runtime, DeviceSupport& support,
                                           const DeviceFacts& facts, const Kernel& kernel,
                                           const Config& config, CompilePolicy policy) {
  CandidateBuild build;
  KILN_RETURN_IF_ERROR(guarded("programs", [&] {
    build.programs = kernel.programs(facts, config);
    return absl::OkStatus();
  }));
  for (const Program& program : build.programs) {
    if (program.smem_bytes > facts.smem_budget && facts.smem_budget > 0) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("%s wants %d bytes of dynamic shared memory where a block may use %d",
                          program.source, program.smem_bytes, facts.smem_budget));
    }
  }
  jit::BuildOptions options;
  options.policy = policy == CompilePolicy::forbid ? jit::Policy::forbid : jit::Policy::block;
  options.any_compiler = runtime.options.any_compiler;
  for (const Program& program : build.programs) {
    KILN_ASSIGN_OR_RETURN(const std::string target,
                          support.target_for(facts, program.arch_specific));
    build.built.push_back(runtime.engine.prefetch(support.compiler(), program, target, options));
  }
  return build;
}

absl::Status end_build(const CandidateBuild& build, absl::Time deadline, TuneCandidate& candidate) {
  for (std::size_t i = 0; i < build.built.size(); ++i) {
    if (build.built[i].wait_until(absl::ToChronoTime(deadline)) != std::future_status::ready) {
      return absl::DeadlineExceededError(
          absl::StrFormat("%s was not compiled in time", build.programs[i].source));
    }
    KILN_RETURN_IF_ERROR(build.built[i].get().status());
    for (const KernelInfo& kernel : build.built[i].get()->kernels) {
      candidate.registers = std::max(candidate.registers, kernel.registers);
      candidate.spill_bytes = std::max(candidate.spill_bytes, kernel.spill_bytes);
      if (kernel.static_smem_bytes >= 0) {
        candidate.smem_bytes =
            std::max(candidate.smem_bytes, kernel.static_smem_bytes + build.programs[i].smem_bytes);
      }
    }
  }
  return absl::OkStatus();
}

std::string ruled_out(const TuneCandidate& candidate, const TuneCandidate& by_default,
                      const DeviceFacts& facts) {
  if (facts.smem_budget > 0 && candidate.smem_bytes > facts.smem_budget) {
    return absl::StrFormat("wants %d bytes of shared memory where a block may use %d",
                           candidate.smem_bytes, facts.smem_budget);
  }
  if (candidate.spill_bytes > std::max<std::int64_t>(0, by_default.spill_bytes) + kSpillSlack) {
    return absl::StrFormat("spills %d bytes a thread where the default spills %d",
                           candidate.spill_bytes,
                           std::max<std::int64_t>(0, by_default.spill_bytes));
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Loaded>> load_candidate(const CandidateBuild& build,
                                                       DeviceSupport& support,
                                                       DeviceSupport& launches, int index,
                                                       const DeviceFacts& facts,
                                                       const Config& config) {
  auto loaded = std::make_unique<Loaded>();
  loaded->config = config;
  loaded->facts = facts;
  loaded->support = &launches;
  for (std::size_t i = 0; i < build.built.size(); ++i) {
    const Program& program = build.programs[i];
    const cache::Artifact& artifact = *build.built[i].get()->artifact;
    KILN_ASSIGN_OR_RETURN(std::shared_ptr<LoadedImage> image,
                          support.load(index, artifact.kind, artifact.image, program.kernels));
    for (void* function : image->functions()) {
      KILN_RETURN_IF_ERROR(
          support.prepare(index, function, static_cast<std::uint32_t>(program.smem_bytes)));
      loaded->functions.push_back(function);
    }
    loaded->images.push_back(std::move(image));
  }
  return loaded;
}

double occupancy_of(const DeviceFacts& facts, std::int64_t registers, std::int64_t smem_bytes,
                    std::uint32_t block_threads) {
  if (facts.arch == 0 || registers <= 0 || block_threads == 0) return -1;
  const SmLimits limits = limits_of(facts.arch);
  const std::int64_t warps = round_up(block_threads, 32) / 32;
  // Registers are handed out to warps in units of 256, and to the four parts of an SM alike.
  const std::int64_t by_registers =
      kRegistersOfSm / (round_up(registers * 32, 256) * round_up(warps, 4));
  std::int64_t blocks = std::min({limits.blocks, limits.warps / warps, by_registers});
  if (facts.smem_budget > 0) {
    blocks = std::min(blocks, (facts.smem_budget + kReservedSmem) /
                                  (std::max<std::int64_t>(0, smem_bytes) + kReservedSmem));
  }
  return static_cast<double>(blocks * warps) / static_cast<double>(limits.warps);
}

}  // namespace kiln::internal
