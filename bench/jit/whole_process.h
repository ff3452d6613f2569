#ifndef KILN_BENCH_JIT_WHOLE_PROCESS_H_
#define KILN_BENCH_JIT_WHOLE_PROCESS_H_

#include <kiln/status.h>

#include "cli/bench_spread.h"
#include "jit/process.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

// For programs that time whole processes of `kiln`.
namespace kiln::bench {

// Ends the program, which cannot do its work here.
inline void check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message_of(status).c_str());
  std::_Exit(3);
}

template <class T>
T must(absl::StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

inline std::filesystem::path self() { return std::filesystem::read_symlink("/proc/self/exe"); }

// The `kiln` that was built beside this program.
inline std::string kiln_beside() {
  const std::string kiln = (self().parent_path() / "kiln").string();
  if (!std::filesystem::exists(kiln))
    check(absl::NotFoundError("kiln must be built beside this program: got no " + kiln));
  return kiln;
}

inline std::filesystem::path new_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    check(absl::InternalError("a temporary folder must be makeable: got " + folder));
  return folder;
}

// Microseconds from the start of a process to its end: in our environment with a cache of its own
// and no other of Kiln's settings for it.
inline double run_us(const std::vector<std::string>& words, const std::filesystem::path& cache) {
  std::vector<std::string> environment = {"KILN_CACHE_DIR=" + cache.string()};
  for (char** word = environ; *word != nullptr; ++word) {
    if (!std::string_view(*word).starts_with("KILN_CACHE")) environment.emplace_back(*word);
  }
  const auto start = std::chrono::steady_clock::now();
  const jit::ProcessResult result = must(jit::run_process(
      {.program = words[0], .arguments = words, .environment = std::move(environment)}));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (result.exit_status != 0)
    check(absl::InternalError(absl::StrFormat("%s %s: must succeed: ended with %d: %s", words[0],
                                              words[1], result.exit_status, result.output)));
  return took.count();
}

inline Json workload(const std::string& family, const std::string& name,
                     std::vector<Json> contenders) {
  return {
      {"name", family + ": " + name}, {"family", family}, {"contenders", std::move(contenders)}};
}

// Prints them and writes {"workloads"} to the file, unless its name is empty.
inline void write_workloads(const Json& workloads, const std::string& file) {
  std::printf("%s\n", workloads.dump(1).c_str());
  if (file.empty()) return;
  std::ofstream out(file);
  out << Json{{"workloads", workloads}}.dump(1) << '\n';
  out.flush();
  if (!out)
    check(absl::InvalidArgumentError("--json: must be a file that can be written: got " + file));
}

// Wrong usage ends the program.
[[noreturn]] inline void end_with_usage(const std::string& must, const std::string& usage) {
  std::fprintf(stderr, "%s: %s; usage: %s %s\n", program_invocation_short_name, must.c_str(),
               program_invocation_short_name, usage.c_str());
  std::_Exit(2);
}

// Takes --json FILE out of the words, wherever it stands; "" without it. Before minutes are spent,
// the file must be one that can be written.
inline std::string take_json(std::vector<std::string>& words, const std::string& usage) {
  const auto option = std::find(words.begin(), words.end(), "--json");
  if (option == words.end()) return "";
  if (option + 1 == words.end())
    end_with_usage("--json: must be followed by a file: got nothing", usage);
  const std::string file = *(option + 1);
  words.erase(option, option + 2);
  const bool is_new = !std::filesystem::exists(file);
  if (!std::ofstream(file, std::ios::app))
    end_with_usage("--json: must be a file that can be written: got " + file, usage);
  if (is_new) std::filesystem::remove(file);
  return file;
}

inline int whole_number(const char* name, const std::string& word, const std::string& usage) {
  int value = 0;
  if (absl::SimpleAtoi(word, &value) && value >= 1) return value;
  end_with_usage(absl::StrFormat("%s: must be a whole number, 1 or more: got \"%s\"", name, word),
                 usage);
}

// [--json FILE] [ROUNDS]; wrong usage ends the program.
struct RoundsArguments {
  std::string json;
  int rounds;
};
inline RoundsArguments rounds_arguments(std::vector<std::string> words, int rounds) {
  const std::string usage = "[--json FILE] [ROUNDS]";
  RoundsArguments arguments{take_json(words, usage), rounds};
  if (words.size() > 1)
    end_with_usage(
        absl::StrFormat("ROUNDS: must be given once: got \"%s\" and \"%s\"", words[0], words[1]),
        usage);
  if (!words.empty()) arguments.rounds = whole_number("ROUNDS", words[0], usage);
  return arguments;
}

}  // namespace kiln::bench

#endif  // KILN_BENCH_JIT_WHOLE_PROCESS_H_
