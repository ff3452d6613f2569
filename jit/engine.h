#ifndef KILN_JIT_ENGINE_H_
#define KILN_JIT_ENGINE_H_

#include <kiln/compiler.h>
#include <kiln/export.h>
#include <kiln/program.h>
#include <kiln/sources.h>

#include "base/background.h"
#include "base/trace.h"
#include "cache/artifact.h"
#include "cache/store.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::jit {

// May a build compile? (Serving by another kernel meanwhile is the business of dispatch.)
enum class Policy { block, forbid };

// Named sources of all families and plugins. Thread-safe. With a folder set (KILN_KERNEL_PATH) a
// name is read from there each time, and only what the folder lacks comes from the table.
class KILN_EXPORT Sources {
 public:
  explicit Sources(std::string override_folder = "");
  ~Sources();
  absl::Status add(const SourceTable& table);  // AlreadyExists: another content under a known name
  // All who read a name share one text of it. NotFound names what is known nearby.
  absl::StatusOr<SharedText> read(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct BuildOptions {
  Policy policy = Policy::block;
  absl::Time deadline = absl::InfiniteFuture();
  // KILN_COMPILER_MATCH=any: an artifact that another compiler made of the same source is preferred
  // to compiling.
  bool any_compiler = false;
};

struct Built {
  std::shared_ptr<const cache::Artifact> artifact;
  std::vector<KernelInfo> kernels;  // from the artifact's metadata
  std::optional<cache::TierKind>
      found_in;  // nullopt: compiled by this call (or by the one it waited for)
  absl::Duration seconds = absl::ZeroDuration();  // how long this call took
};

struct EngineStats {
  std::int64_t compilations = 0, failures = 0, waits = 0;
  absl::Duration compile_time = absl::ZeroDuration();
};

// Compiles programs, each key once: across threads by a shared result (a failed one is forgotten),
// across processes by the store's lease. Thread-safe.
class KILN_EXPORT Engine {
 public:
  // `threads`: builds that `prefetch` and `background` have under way at most. `trace`: where
  // compilations are recorded; null: nowhere.
  Engine(const Sources& sources, cache::Store& store, int threads = 1, Trace* trace = nullptr);
  ~Engine();

  // The request that `program` is for `target`: sources read, constants rendered, headers sorted.
  absl::StatusOr<CompileRequest> request_for(const Program& program, std::string_view target) const;
  // Key and fields of the artifact that `request` makes with a compiler `id`; image, kind and
  // metadata are empty.
  cache::Artifact describe(const CompileRequest& request, const CompilerId& id) const;

  // The artifact of `program` for `target`: found in the store, else compiled and stored. Where the
  // compiler cannot be had, under `forbid` and with `any_compiler`, one that any compiler made of
  // the same source will do. Errors: those of Compiler::compile; FailedPrecondition under `forbid`
  // when it is in no tier (names the key and the command that would warm it); DeadlineExceeded.
  absl::StatusOr<Built> build(const Compiler& compiler, const Program& program,
                              std::string_view target, const BuildOptions& options = {});

  // The same behind the caller's back: the result of `build`, when it is there. `compiler` must
  // live until then; the engine's destructor waits for it, or breaks the promise of a build that
  // has not begun.
  std::shared_future<absl::StatusOr<Built>> prefetch(const Compiler& compiler,
                                                     const Program& program,
                                                     std::string_view target,
                                                     const BuildOptions& options = {});
  // The threads that prefetch uses, for those who build with more than an engine.
  Background& background();

  EngineStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "NAME=VALUE" for a constant. InvalidArgument: the name is no identifier, or the value is not
// finite.
KILN_EXPORT absl::StatusOr<std::string> render_constant(const NamedConstant& constant);

}  // namespace kiln::jit

#endif  // KILN_JIT_ENGINE_H_
