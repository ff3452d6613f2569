// A process that tunes the test op in a cache folder that it shares: prints "sweeping" when its
// sweep begins, and at last "sweeps=<n> <winner>".
// Arguments: the folder, and the traps.
#include "tests/tuning/tuning_fixture.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto runtime = kiln::testing::tuning_runtime(argv[1]);
  auto op = kiln::testing::tuning_op(*runtime, std::atoll(argv[2]));
  kiln::testing::CallerTensors tensors;
  if (!tensors.call(*op).ok()) return 3;
  kiln::TuneOptions options;
  options.sample_seconds = 2e-4;
  bool told = false;
  options.progress = [&told](const kiln::TuneProgress& progress) {
    if (told || progress.phase == kiln::TuneProgress::Phase::done) return;
    told = true;
    std::printf("sweeping\n");
    std::fflush(stdout);
  };
  op->request_tune(options);
  const std::vector<kiln::TuneReport> reports = op->tune_reports();
  if (reports.size() != 1 || !reports[0].status.ok()) return 4;
  std::printf("sweeps=%lld %s\n", static_cast<long long>(runtime->stats().sweeps),
              kiln::to_string(op->kernel_config()).c_str());
  return 0;
}
