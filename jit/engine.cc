#include "jit/engine.h"

#include "base/log.h"
#include "base/process.h"
#include "jit/hermetic.h"
#include "jit/metadata.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <unistd.h>
#include <utility>
#include <variant>

namespace kiln::jit {
namespace {

// The meaning of the source fields and of what is stored under them. Part of every key: raise it
// when either changes.
constexpr const char* kArtifactFormat = "1";

// More of a compiler's log than a person reads; what is beyond rarely says anything new.
constexpr std::size_t kMaxLogBytes = 16 << 10;

// Standard locks, here and in the rest of this folder: ThreadSanitizer does not know those of an
// Abseil that was built without it, and every lock would be a false report.
struct Flight {
  std::mutex mutex;  // guards all below
  std::condition_variable landed;
  std::optional<absl::StatusOr<Built>> result;
};

bool is_plain(char c) {
  return is_identifier(std::string_view(&c, 1)) || (c >= '0' && c <= '9') ||
         std::string_view("-./=+:,").find(c) != std::string_view::npos;
}

// `word` so that a shell takes it as one.
std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The command that compiles `request` alone.
std::string reproducer(const CompileRequest& request) {
  std::string line = "kiln compile " + shell_quoted(request.source_name) + " --target " +
                     shell_quoted(request.target);
  for (const auto& [name, contents] : request.headers) line += " --header " + shell_quoted(name);
  for (const std::string& define : request.defines) line += " --define " + shell_quoted(define);
  for (const std::string& option : request.options) line += " --option=" + shell_quoted(option);
  for (const std::string& kernel : request.kernels) line += " --kernel " + shell_quoted(kernel);
  return line;
}

std::string trimmed(std::string text) {
  if (text.size() <= kMaxLogBytes) return text;
  const std::size_t left_out = text.size() - kMaxLogBytes;
  text.resize(kMaxLogBytes);
  return text + absl::StrFormat("\n... (%d bytes more)", left_out);
}

// `status` of a compilation with what a reader needs to find and repeat it; code and kind stay.
absl::Status explain(const absl::Status& status, const CompileRequest& request) {
  std::string defines;
  for (const std::string& define : request.defines) defines += " " + define;
  absl::Status explained(
      status.code(),
      absl::StrFormat("build of %s for %s: %s\ndefines:%s\nreproduce: %s", request.source_name,
                      request.target, trimmed(message_of(status)),
                      defines.empty() ? " none" : defines, reproducer(request)));
  const ErrorKind kind = error_kind(status);
  return kind == ErrorKind::none ? explained : with_kind(std::move(explained), kind);
}

// A compiler may come from a plugin: its exceptions end here.
absl::StatusOr<CompileResult> guarded_compile(const Compiler& compiler,
                                              const CompileRequest& request) {
  try {
    return compiler.compile(request);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrFormat("compiler: must not throw: got '%s'", error.what()));
  } catch (...) {
    return absl::InternalError("compiler: must not throw: got an exception of unknown type");
  }
}

// What names the source of `request`; the compiler is still open.
cache::Artifact describe_source(const CompileRequest& request) {
  cache::Artifact artifact;
  std::vector<cache::KeyField>& fields = artifact.source_fields;
  fields = {{"format", kArtifactFormat},
            {"target", request.target},
            {"source_name", request.source_name},
            {"source", request.source}};
  for (const auto& [name, contents] : request.headers)
    fields.push_back({"header " + name, contents});
  for (const std::string& define : request.defines) fields.push_back({"define", define});
  for (const std::string& option : request.options) fields.push_back({"option", option});
  for (const std::string& kernel : request.kernels) fields.push_back({"kernel", kernel});
  artifact.key.source = hash_fields(fields);
  return artifact;
}

std::vector<cache::KeyField> compiler_fields(const CompilerId& id) {
  return {{"name", id.name}, {"build", id.build}, {"headers", id.headers}};
}

void add_compiler(const CompilerId& id, cache::Artifact& artifact) {
  artifact.compiler_fields = compiler_fields(id);
  artifact.key.compiler = hash_fields(artifact.compiler_fields);
}

absl::StatusOr<Built> built_from(cache::Found found) {
  Built built{.artifact = std::move(found.artifact), .found_in = found.tier};
  KILN_ASSIGN_OR_RETURN(built.kernels, kernel_infos(built.artifact->metadata));
  return built;
}

}  // namespace

struct Engine::Impl {
  Impl(const Sources& s, cache::Store& c, int threads, Trace* t)
      : sources(s), store(c), trace(t), background(threads) {}

  absl::StatusOr<std::optional<Built>> find(const cache::Artifact& wanted);
  absl::StatusOr<std::optional<Built>> find_by_source(const cache::Artifact& wanted);
  absl::StatusOr<Built> build_alone(const Compiler& compiler, const CompileRequest& request,
                                    const cache::Artifact& wanted, absl::Time deadline);
  absl::StatusOr<Built> compile(const Compiler& compiler, const CompileRequest& request,
                                cache::Artifact artifact);
  absl::StatusOr<Built> find_or_build(const Compiler& compiler, const CompileRequest& request,
                                      cache::Artifact wanted, const BuildOptions& options);
  absl::StatusOr<Built> build_once(const Compiler& compiler, const CompileRequest& request,
                                   const cache::Artifact& wanted, absl::Time deadline);
  std::optional<absl::StatusOr<Built>> wait(Flight& flight, absl::Time deadline);

  const Sources& sources;
  cache::Store& store;
  Trace* const trace;
  const std::int64_t owner = ::getpid();
  std::mutex mutex;  // guards all below
  absl::flat_hash_map<cache::CompileKey, std::shared_ptr<Flight>, cache::CompileKeyHasher> flights;
  EngineStats counters;
  Background background;  // the last member: its jobs use the others
};

absl::StatusOr<std::optional<Built>> Engine::Impl::find(const cache::Artifact& wanted) {
  KILN_ASSIGN_OR_RETURN(std::optional<cache::Found> found, store.find(wanted));
  if (!found) return std::optional<Built>();
  absl::StatusOr<Built> built = built_from(*std::move(found));
  if (built.ok()) return std::optional<Built>(*std::move(built));
  // Whole and of this key, yet not to be read: built again, which replaces it.
  log(LogLevel::warning, message_of(annotate(built.status(), "artifact " + to_hex(wanted.key))));
  return std::optional<Built>();
}

absl::StatusOr<std::optional<Built>> Engine::Impl::find_by_source(const cache::Artifact& wanted) {
  KILN_ASSIGN_OR_RETURN(std::optional<cache::Found> found, store.find_by_source(wanted));
  if (!found) return std::optional<Built>();
  KILN_ASSIGN_OR_RETURN(Built built, built_from(*std::move(found)));
  return std::optional<Built>(std::move(built));
}

absl::StatusOr<Built> Engine::Impl::compile(const Compiler& compiler, const CompileRequest& request,
                                            cache::Artifact artifact) {
  const TraceSpan span(trace, "compile", request.source_name + " for " + request.target);
  const absl::Time start = absl::Now();
  absl::StatusOr<CompileResult> result = guarded_compile(compiler, request);
  {
    const std::lock_guard lock(mutex);
    ++(result.ok() ? counters.compilations : counters.failures);
    counters.compile_time += absl::Now() - start;
  }
  if (!result.ok()) return explain(result.status(), request);
  if (!result->log.empty()) {
    log(LogLevel::info, absl::StrFormat("%s for %s: %s", request.source_name, request.target,
                                        trimmed(result->log)));
  }
  // Who compiles can change once, when the NVRTC of the workers is exchanged while this process
  // runs: the key would then name another.
  KILN_ASSIGN_OR_RETURN(const CompilerId id, compiler.id());
  if (compiler_fields(id) != artifact.compiler_fields) {
    return absl::AbortedError(
        absl::StrFormat("build of %s for %s: the compiler must stay the same: it became %s %s",
                        request.source_name, request.target, id.name, id.build));
  }
  artifact.kind = std::move(result->kind);
  artifact.image = std::move(result->image);
  artifact.metadata = make_metadata(result->kernels);
  Built built{.artifact = std::make_shared<const cache::Artifact>(std::move(artifact)),
              .kernels = std::move(result->kernels)};
  KILN_RETURN_IF_ERROR(store.put(built.artifact));
  return built;
}

absl::StatusOr<Built> Engine::Impl::build_alone(const Compiler& compiler,
                                                const CompileRequest& request,
                                                const cache::Artifact& wanted,
                                                absl::Time deadline) {
  KILN_ASSIGN_OR_RETURN(const cache::Lease lease,
                        store.lease(wanted.key, deadline, compiler.makes_host_code()));
  // Whoever held the lease before, here or in another process, may have built it.
  KILN_ASSIGN_OR_RETURN(std::optional<Built> found, find(wanted));
  if (found) return *std::move(found);
  if (absl::Now() >= deadline) {
    return absl::DeadlineExceededError(
        absl::StrFormat("build of %s for %s: must be done by the deadline: it passed "
                        "before the compilation began",
                        request.source_name, request.target));
  }
  return compile(compiler, request, wanted);
}

// The flight's result, or nullopt when `deadline` passed first.
std::optional<absl::StatusOr<Built>> Engine::Impl::wait(Flight& flight, absl::Time deadline) {
  {
    const std::lock_guard lock(mutex);
    ++counters.waits;
  }
  std::unique_lock lock(flight.mutex);
  const auto landed = [&flight] { return flight.result.has_value(); };
  if (deadline == absl::InfiniteFuture()) {
    flight.landed.wait(lock, landed);
  } else {
    flight.landed.wait_until(lock, absl::ToChronoTime(deadline), landed);
  }
  return flight.result;
}

absl::StatusOr<Built> Engine::Impl::build_once(const Compiler& compiler,
                                               const CompileRequest& request,
                                               const cache::Artifact& wanted, absl::Time deadline) {
  while (true) {
    std::shared_ptr<Flight> flight;
    bool mine = false;
    {
      const std::lock_guard lock(mutex);
      auto [row, added] = flights.try_emplace(wanted.key, nullptr);
      if (added) row->second = std::make_shared<Flight>();
      flight = row->second;
      mine = added;
    }
    if (mine) {
      absl::StatusOr<Built> result = build_alone(compiler, request, wanted, deadline);
      {
        const std::lock_guard lock(mutex);
        flights.erase(
            wanted.key);  // first: who comes from here on looks in the store, or tries again
      }
      const std::lock_guard lock(flight->mutex);
      flight->result = result;
      flight->landed.notify_all();
      return result;
    }
    std::optional<absl::StatusOr<Built>> result = wait(*flight, deadline);
    if (!result) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "build of %s for %s: must be done by the deadline: another thread still compiles it",
          request.source_name, request.target));
    }
    // The builder's deadline was not ours: go on while we have time.
    if (absl::IsDeadlineExceeded(result->status()) && absl::Now() < deadline) continue;
    return *std::move(result);
  }
}

Engine::Engine(const Sources& sources, cache::Store& store, int threads, Trace* trace)
    : impl_(std::make_unique<Impl>(sources, store, threads, trace)) {}

Engine::~Engine() = default;

absl::StatusOr<CompileRequest> Engine::request_for(const Program& program,
                                                   std::string_view target) const {
  CompileRequest request{.source_name = program.source,
                         .options = program.options,
                         .kernels = program.kernels,
                         .target = std::string(target)};
  KILN_ASSIGN_OR_RETURN(request.source, impl_->sources.read(program.source));
  for (const std::string& name :
       std::set<std::string>(program.headers.begin(), program.headers.end())) {
    KILN_ASSIGN_OR_RETURN(SharedText contents, impl_->sources.read(name));
    request.headers.emplace_back(name, std::move(contents));
  }
  std::set<std::string> names;
  for (const NamedConstant& constant : program.constants) {
    absl::StatusOr<std::string> define = render_constant(constant);
    if (!define.ok()) return annotate(define.status(), program.source);
    if (!names.insert(constant.name).second) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: a constant must be given once: got %s again", program.source, constant.name));
    }
    request.defines.push_back(*std::move(define));
  }
  for (const std::string& kernel : program.kernels) {
    if (is_identifier(kernel)) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: a kernel's name must be a C identifier: got '%s'", program.source, kernel));
  }
  return request;
}

cache::Artifact Engine::describe(const CompileRequest& request, const CompilerId& id) const {
  cache::Artifact artifact = describe_source(request);
  add_compiler(id, artifact);
  return artifact;
}

absl::StatusOr<Built> Engine::Impl::find_or_build(const Compiler& compiler,
                                                  const CompileRequest& request,
                                                  cache::Artifact wanted,
                                                  const BuildOptions& options) {
  const absl::StatusOr<CompilerId> id = compiler.id();
  add_compiler(id.ok() ? *id : CompilerId(), wanted);
  std::optional<Built> found;
  if (id.ok()) {
    KILN_ASSIGN_OR_RETURN(found, find(wanted));
  }
  if (!found && (!id.ok() || options.policy == Policy::forbid || options.any_compiler)) {
    KILN_ASSIGN_OR_RETURN(found, find_by_source(wanted));
  }
  if (found) return *std::move(found);
  if (options.policy == Policy::forbid) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "build of %s for %s: compiling is forbidden and no cache tier has key %s; warm it: kiln "
        "warm, or %s",
        request.source_name, request.target, to_hex(wanted.key), reproducer(request)));
  }
  KILN_RETURN_IF_ERROR(id.status());
  return build_once(compiler, request, wanted, options.deadline);
}

absl::StatusOr<Built> Engine::build(const Compiler& compiler, const Program& program,
                                    std::string_view target, const BuildOptions& options) {
  const absl::Time start = absl::Now();
  KILN_RETURN_IF_ERROR(check_not_forked(impl_->owner, "compilation"));
  KILN_ASSIGN_OR_RETURN(const CompileRequest request, request_for(program, target));
  cache::Artifact wanted = describe_source(request);
  if (compiler.makes_host_code()) wanted.kind = cache::kHostObject;
  // To ask who compiles may take as long as to start a compiler: it opens NVRTC.
  if (options.policy == Policy::block && !impl_->store.may_have_source(wanted)) compiler.prepare();
  absl::StatusOr<Built> built = impl_->find_or_build(compiler, request, wanted, options);
  // Under the key of the compiler that it has become.
  if (absl::IsAborted(built.status()))
    built = impl_->find_or_build(compiler, request, wanted, options);
  if (built.ok()) built->seconds = absl::Now() - start;
  return built;
}

std::shared_future<absl::StatusOr<Built>> Engine::prefetch(const Compiler& compiler,
                                                           const Program& program,
                                                           std::string_view target,
                                                           const BuildOptions& options) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<Built>>>();
  std::shared_future<absl::StatusOr<Built>> future = promise->get_future().share();
  impl_->background.run([this, &compiler, program, target = std::string(target), options, promise] {
    promise->set_value(build(compiler, program, target, options));
  });
  return future;
}

Background& Engine::background() { return impl_->background; }

EngineStats Engine::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counters;
}

}  // namespace kiln::jit
