// What reads bytes that a stranger may have written: artifact files, values of remote stores,
// packs. With clang this is a libFuzzer target (KILN_LIBFUZZER); else a program that mutates good
// files itself, for a number of seconds (the test command runs it under AddressSanitizer too):
//   fuzz_readers SECONDS [SEED]
#include "base/hash128.h"
#include "cache/artifact.h"
#include "cache/bytes.h"
#include "cache/pack.h"
#include "cache/remote_value.h"
#include "tests/support/artifacts.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kiln::cache;
using kiln::hash128;
using kiln::testing::make_artifact;
using kiln::testing::share;

// Whatever parses must be a fixed point: written again and read again it is the same.
void read_artifact(std::string_view bytes) {
  // As a value of a remote store it is the same, or refused; unsigned always where a key is wanted.
  const auto value = read_remote_value(bytes, {});
  const auto trusted = read_remote_value(bytes, {.required = true, .keys = {PublicKey()}});
  if (trusted.ok()) std::abort();
  const auto parsed = parse_artifact(bytes);
  if (value.ok() && parsed.ok() && !kiln::testing::same_artifact(*value, *parsed)) std::abort();
  if (!parsed.ok()) return;
  const auto again = parse_artifact(serialize(*parsed));
  if (!again.ok() || !kiln::testing::same_artifact(*parsed, *again)) std::abort();
}

void read_pack(std::string_view bytes) {
  const auto pack = Pack::open(bytes, {});
  if (!pack.ok()) return;
  for (std::size_t i = 0; i < (*pack)->size() && i < 64; ++i) {
    (*pack)->image_bytes(i);
    const auto artifact = (*pack)->artifact(i);
    if (!artifact.ok()) continue;
    const auto found = (*pack)->find(*artifact);
    // Read by its number and by its key it must be one artifact.
    if (!found.ok() || *found == nullptr || !kiln::testing::same_artifact(**found, *artifact))
      std::abort();
    if ((*pack)->find_by_source(*artifact).ok()) continue;
  }
  for (std::size_t i = 0; i < (*pack)->tuning_size() && i < 64; ++i) {
    if ((*pack)->tuning(i).ok()) continue;
  }
  for (int seed = 0; seed < 4; ++seed) {
    if ((*pack)->find(make_artifact(seed)).ok()) continue;
  }
}

// Checksums made right, so that what is behind them is reached: what a forger can do.
void seal_artifact(std::string& bytes) {
  if (bytes.size() < 28) return;
  bytes.resize(bytes.size() - 16);
  append_hash(bytes, hash128(bytes));
}

void seal_pack(std::string& bytes) {
  constexpr std::size_t kHead = 56;
  if (bytes.size() < kHead) return;
  const auto put = [&bytes](std::size_t at, const kiln::Hash128& hash) {
    std::string text;
    append_hash(text, hash);
    bytes.replace(at, 16, text);
  };
  put(kHead - 16, hash128(std::string_view(bytes).substr(0, kHead - 16)));
  Reader reader(std::string_view(bytes).substr(16, 12));
  const std::uint64_t artifacts = reader.u32(), blobs = reader.u32(), tuning = reader.u32();
  const std::uint64_t tables = artifacts * 56 + blobs * 64 + tuning * 8;
  if (tables > bytes.size() - kHead || bytes.size() - kHead - tables < 16) return;
  put(kHead + tables, hash128(std::string_view(bytes).substr(kHead, tables)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) (data[0] & 2) != 0 ? seal_pack(bytes) : seal_artifact(bytes);
  (data[0] & 2) != 0 ? read_pack(bytes) : read_artifact(bytes);
  return 0;
}

#ifndef KILN_LIBFUZZER
namespace {

std::vector<std::string> corpus() {
  PackContents contents;
  for (int i = 0; i < 4; ++i) contents.artifacts.push_back(share(make_artifact(i, 100)));
  contents.tuning = {{"a", "{}"}, {"b", "[1]"}};
  const std::string pack = *make_pack(contents);
  const SigningKey key;  // the same bytes at every start
  std::vector<std::string> out;
  for (const char flags : {'\0', '\1'}) {
    out.push_back(flags + serialize(make_artifact(1)));
    out.push_back(flags + serialize(make_artifact(2, 5000)));
    out.push_back(flags + make_remote_value(make_artifact(1), &key));
  }
  for (const char flags : {'\2', '\3'}) {
    out.push_back(flags + pack);
    out.push_back(flags + *make_pack({}));
  }
  return out;
}

void mutate(std::string& bytes, std::mt19937_64& random) {
  constexpr std::uint64_t kNumbers[] = {
      0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~0ull};
  for (std::uint64_t n = 1 + random() % 4; n > 0 && bytes.size() > 1; --n) {
    const std::size_t at = 1 + random() % (bytes.size() - 1);
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2: {
        std::string number;
        append_number(number, kNumbers[random() % 8] + random() % 3, random() % 2 == 0 ? 4 : 8);
        bytes.replace(at, number.size(), number);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, random() % 16);
        break;
      default:
        bytes.insert(at, bytes.substr(1 + random() % (bytes.size() - 1), random() % 64));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const std::vector<std::string> files = corpus();
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t runs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
    for (int i = 0; i < 100; ++i, ++runs) {
      std::string input = files[random() % files.size()];
      mutate(input, random);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
  }
  std::printf("%llu inputs read\n", static_cast<unsigned long long>(runs));
  return runs > 0 ? 0 : 1;
}
#endif
