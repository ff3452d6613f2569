// What one call of an op costs the host when everything is built: docs/performance.md says how to
// run it and what it gave. All benchmarks share one op, as a serving process does, so that what
// threads share is shared here too.
#include <kiln/words.h>

#include "bench/runtime/no_op_device.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <iterator>

namespace kiln::bench {

// Not inlined, and not known to do nothing.
absl::Status NoOpDevice::launch(void* function, const Stream&, const LaunchShape&, void** args) {
  benchmark::DoNotOptimize(function);
  benchmark::DoNotOptimize(args);
  return absl::OkStatus();
}

namespace {

NoOpRuntime& shared() {
  static NoOpRuntime* const runtime = new NoOpRuntime;
  return *runtime;
}

const Device kDevice{DeviceType::cpu(), 0};

// Tensors of one call; `rows` makes it a call of its own.
struct Tensors {
  explicit Tensors(std::int64_t rows) {
    alignas(64) static char memory[64];
    x = Tensor::contiguous(memory, kDevice, DType::float16, {rows, 4096});
    y = x;
    weight = Tensor::contiguous(memory, kDevice, DType::float16, {4096});
    bias = weight;
  }
  absl::Status call(const Stream& stream) {
    return shared().op->forward(stream, x, weight, bias, y);
  }
  Tensor x, weight, bias, y;
};

// A loop of about the length of `find_entry` that reads and writes nothing but its own thread's
// stack: what it costs more on 16 threads than on one, the machine takes (its clock falls with the
// cores at work), and no cache line that threads share.
void control(benchmark::State& state) {
  std::uint64_t words[16] = {};
  for (auto _ : state) {
    for (int round = 0; round < 2; ++round) words[round] += mix_words(words, std::size(words));
    benchmark::DoNotOptimize(words);
  }
}

// The launch alone, as a kernel class does it: what the other figures hold and Kiln does not add.
void bare_launch(benchmark::State& state) {
  const Stream stream{kDevice, nullptr};
  Tensors t(8192);
  DeviceSupport* support = shared().support.get();
  benchmark::DoNotOptimize(support);
  for (auto _ : state) {
    const LaunchShape shape{.grid = {8192, 1, 1}, .block = {256, 1, 1}};
    std::int64_t rows = 8192, n = 4096;
    float eps = 1e-5f;
    void* args[] = {&t.x.data, &t.weight.data, &t.bias.data, &t.y.data, &rows, &n, &eps};
    benchmark::DoNotOptimize(support->launch(support, stream, shape, args));
  }
}

// Finding the entry of a call spec.
void find_entry(benchmark::State& state) {
  RowsCall call{.rows = 8192, .n = 4096, .where = {kDevice}};
  RowsFwdOp& op = *shared().op;
  if (!op.kernel_for<RowsFwdInterface>(call).ok()) state.SkipWithError("no entry");
  for (auto _ : state) {
    benchmark::DoNotOptimize(call);
    benchmark::DoNotOptimize(op.kernel_for<RowsFwdInterface>(call));
  }
}

// The whole of Op::call, launch included.
void whole_call(benchmark::State& state) {
  const Stream stream{kDevice, nullptr};
  Tensors t(8192);
  if (!t.call(stream).ok()) state.SkipWithError("the call failed");
  for (auto _ : state) {
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(t.call(stream));
  }
}

// The same with calls of 256 shapes in turn: the table's rows do not stay in the first cache.
void whole_call_256_shapes(benchmark::State& state) {
  const Stream stream{kDevice, nullptr};
  std::vector<Tensors> calls;
  for (int i = 0; i < 256; ++i) calls.emplace_back(1 + i);
  for (Tensors& t : calls) {
    if (!t.call(stream).ok()) state.SkipWithError("the call failed");
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(calls[next++ % 256].call(stream));
}

BENCHMARK(control)->ThreadRange(1, 16);
BENCHMARK(bare_launch)->ThreadRange(1, 16);
BENCHMARK(find_entry)->ThreadRange(1, 16);
BENCHMARK(whole_call)->ThreadRange(1, 16);
BENCHMARK(whole_call_256_shapes)->ThreadRange(1, 16);
// For instruction counts: the difference of the two runs' instructions, by 10,000.
BENCHMARK(find_entry)->Name("count_find_entry")->Iterations(10000);
BENCHMARK(find_entry)->Name("count_find_entry")->Iterations(20000);
BENCHMARK(whole_call)->Name("count_whole_call")->Iterations(10000);
BENCHMARK(whole_call)->Name("count_whole_call")->Iterations(20000);
BENCHMARK(bare_launch)->Name("count_bare_launch")->Iterations(10000);
BENCHMARK(bare_launch)->Name("count_bare_launch")->Iterations(20000);

}  // namespace
}  // namespace kiln::bench
