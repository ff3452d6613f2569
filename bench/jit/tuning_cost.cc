// tuning_cost [--json FILE] [ROUNDS]: what a search costs on the CPU backend, by whole processes:
// `kiln warm`, which builds one configuration; `kiln tune` with an empty cache, which builds and
// times them all; and `kiln tune` again, which finds its record.
#include "bench/jit/whole_process.h"

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr const char* kCall =
    R"({"op":"LayerNormFwdOp","params":{"normalized_shape":[4096]},)"
    R"("inputs":{"x":{"dtype":"float32","shape":[64,4096]},)"
    R"("weight":{"dtype":"float32","shape":[4096]},"bias":{"dtype":"float32","shape":[4096]}}})";

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = bench::rounds_arguments({argv + 1, argv + argc}, 3);
  const std::string kiln = bench::kiln_beside();
  const std::vector<std::string> warm = {kiln, "warm", kCall, "--device", "cpu"};
  const std::vector<std::string> tune = {kiln, "tune", kCall, "--device", "cpu"};
  const fs::path folder = bench::new_folder();
  std::vector<double> one, search, record;
  for (int round = 0; round < arguments.rounds; ++round) {
    const fs::path cache = folder / std::to_string(round);
    one.push_back(bench::run_us(warm, cache / "warm"));
    search.push_back(bench::run_us(tune, cache / "tune"));
    record.push_back(bench::run_us(tune, cache / "tune"));
  }
  fs::remove_all(folder);
  const std::string name = "LayerNormFwdOp 64x4096 float32 +weight +bias, cpu";
  bench::write_workloads({bench::workload("tuning cost", name + ", one build",
                                          {bench::contender("kiln", "wall", one)}),
                          bench::workload("tuning cost", name + ", search",
                                          {bench::contender("kiln", "wall", search)}),
                          bench::workload("tuning cost", name + ", from the record",
                                          {bench::contender("kiln", "wall", record)})},
                         arguments.json);
  return 0;
}
