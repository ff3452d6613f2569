#include <kiln/runtime.h>

#include "base/file_system.h"
#include "base/log.h"
#include "cache/remote_records.h"
#include "jit/nvrtc_compiler.h"
#include "jit/worker_compiler.h"
#include "runtime/cuda_device.h"
#include "runtime/families.h"
#include "runtime/guarded.h"
#include "runtime/messages.h"
#include "runtime/plugins.h"
#include "runtime/registering.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

namespace kiln::inline v1 {
namespace {

// A key that cannot be read must not lead to values without a signature.
void read_signing_key(const std::string& file, cache::RemoteOptions& remote) {
  if (file.empty() || remote.url.empty()) return;
  FileSystem& files = real_file_system();
  const auto read = [&]() -> absl::StatusOr<cache::SigningKey> {
    KILN_ASSIGN_OR_RETURN(const Fd fd, files.open_read(file));
    KILN_ASSIGN_OR_RETURN(const std::string text, read_all(files, fd, 4096));
    return cache::parse_signing_key(text);
  };
  absl::StatusOr<cache::SigningKey> key = read();
  if (key.ok()) {
    remote.signing_key = *key;
    return;
  }
  remote.read_only = true;
  log(LogLevel::warning, absl::StrFormat("KILN_SIGNING_KEY: %s: %s; nothing is written to the "
                                         "remote cache",
                                         file, message_of(key.status())));
}

cache::RemoteOptions remote_options(const RuntimeOptions& options) {
  const RemoteCacheOptions& from = options.cache_remote;
  cache::RemoteOptions remote{.url = from.url,
                              .user = from.user,
                              .password = from.password,
                              .token = from.token,
                              .aws = {.access_key = from.aws_access_key,
                                      .secret_key = from.aws_secret_key,
                                      .session_token = from.aws_session_token,
                                      .region = from.aws_region},
                              .ca_file = from.ca_file,
                              .timeout = absl::Seconds(from.timeout_seconds),
                              .max_bytes = from.max_bytes,
                              .read_only = from.read_only};
  read_signing_key(options.signing_key_file, remote);
  return remote;
}

cache::StoreOptions store_options(const RuntimeOptions& options) {
  cache::StoreOptions store;
  store.disk_dir = options.cache_dir;
  store.strict = options.strict_cache;
  store.max_disk_bytes = options.cache_max_bytes;
  store.group_shared = options.cache_group_shared;
  store.write_behind = options.cache_write_behind;
  store.layers = options.cache_layers;
  store.trusted_keys = cache::parse_trusted_keys(options.trusted_keys);
  store.remote = remote_options(options);
  return store;
}

cache::TuningFilesOptions record_options(const RuntimeOptions& options, const cache::Store& store) {
  return {.dir = options.cache_dir,
          .strict = options.strict_cache,
          .group_shared = options.cache_group_shared,
          .layers = options.cache_layers,
          .trusted_keys = cache::parse_trusted_keys(options.trusted_keys),
          .remote = cache::remote_records_of(store)};
}

// NVRTC in worker processes, or in this one where `jobs` is 0. `workers` receives the former.
std::unique_ptr<Compiler> make_compiler(const RuntimeOptions& options,
                                        const jit::WorkerCompiler*& workers) {
  jit::NvrtcOptions nvrtc;
  nvrtc.library = options.nvrtc;
  nvrtc.cuda_home = options.cuda_home;
  std::unique_ptr<Compiler> in_process = jit::make_nvrtc_compiler(nvrtc);
  if (options.jobs == 0) return in_process;
  jit::WorkerOptions pool;
  pool.worker = jit::find_compile_worker(options.compile_worker);
  pool.max_workers = options.jobs > 0 ? options.jobs : jit::usable_cores();
  pool.nvrtc = nvrtc;
  pool.time_limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.compile_limit_seconds * 1e3));
  pool.memory_limit_bytes = options.compile_memory_bytes;
  auto compiler = jit::make_worker_compiler(std::move(pool), std::move(in_process));
  workers = compiler.get();
  return compiler;
}

}  // namespace

Runtime::Impl::Impl(RuntimeOptions runtime_options)
    : options(std::move(runtime_options)),
      sources(options.kernel_path),
      store(cache::make_store(store_options(options))),
      records(record_options(options, *store)),
      trace(Trace::open(options.trace_file)),
      recorder(internal::CallRecorder::open(options.record_calls_file)),
      engine(sources, *store, options.jobs > 0 ? options.jobs : jit::usable_cores(), trace.get()),
      modules(options.max_entries <= 0 ? 0 : std::max<std::int64_t>(1, options.max_entries / 8)) {}

Runtime::Runtime(RuntimeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  Registry in_tree("in-tree");
  SourceTable sources;
  internal::add_family_sources(sources);
  in_tree.add_sources(sources);
  internal::register_families(in_tree);
  in_tree.register_device_support(make_cuda_support(make_compiler(impl_->options, impl_->workers)));
  const absl::Status status = commit(std::move(in_tree));
  if (!status.ok()) log(LogLevel::error, "in-tree families: " + message_of(status));
}

Runtime::~Runtime() {
  // Builds that nobody waits for any more use compilers and modules, which go first.
  impl_->engine.background().stop();
}

Runtime& Runtime::instance() {
  // Never destroyed: work and threads of the host may outlive static destruction.
  static Runtime* const runtime = new Runtime(RuntimeOptions::from_environment());
  return *runtime;
}

const RuntimeOptions& Runtime::options() const { return impl_->options; }

absl::Status Runtime::commit(Registry registry) {
  const Registry::Contents& staged = registry.contents();
  MutexLock lock(impl_->mutex);
  KILN_RETURN_IF_ERROR(internal::check_staged(*impl_, staged));
  for (const SourceTable& table : staged.sources) {
    absl::Status added = impl_->sources.add(table);
    if (!added.ok()) return with_kind(annotate(added, staged.origin), ErrorKind::backend_error);
  }
  for (const OpType& type : staged.ops)
    impl_->ops.emplace(type.signature.op, std::make_unique<OpType>(type));
  for (const auto& [op, reference] : staged.references)
    impl_->references.insert_or_assign(op, reference);
  for (const KernelRow& row : staged.kernels)
    impl_->kernels.push_back(std::make_unique<KernelRow>(row));
  for (const auto& support : staged.supports)
    impl_->supports.emplace(support->type().name(), support);
  for (const DetectorRow& row : staged.detectors)
    impl_->detectors.push_back(std::make_unique<DetectorRow>(row));
  for (const BuilderRow& row : staged.builders)
    impl_->builders.push_back(std::make_unique<BuilderRow>(row));
  return absl::OkStatus();
}

void Runtime::load_backends() {
  // A plugin that makes an op while it is opened gets one without the backends: waiting for them
  // would be waiting for itself.
  if (internal::staged_here() != nullptr) return;
  std::call_once(impl_->backends_once, [this] {
    const auto skip = [this](const std::string& file, const absl::Status& status) {
      log(LogLevel::warning,
          absl::StrFormat("backend %s is skipped: %s", file, message_of(status)));
      MutexLock lock(impl_->mutex);
      impl_->failures.push_back({file, message_of(status)});
    };
#ifdef KILN_STATIC_BACKENDS
    if (impl_->options.load_installed_backends) {
      Registry cpu("built-in cpu backend");
      absl::Status filled = internal::guarded("cpu", [&] { return fill_cpu_backend(cpu); });
      if (filled.ok()) filled = commit(std::move(cpu));
      if (!filled.ok()) skip("built-in cpu backend", filled);
    }
#endif
    for (const std::string& file : internal::find_plugins(impl_->options)) {
      if (internal::is_disabled(impl_->options, file)) continue;
      absl::StatusOr<Registry> staged = internal::open_plugin(file);
      const absl::Status status = staged.ok() ? commit(*std::move(staged)) : staged.status();
      if (!status.ok()) skip(file, status);
    }
  });
}

std::vector<LoadFailure> Runtime::load_failures() const {
  MutexLock lock(impl_->mutex);
  return impl_->failures;
}

std::vector<std::string> Runtime::registered_targets() const {
  MutexLock lock(impl_->mutex);
  std::set<std::string> targets;
  for (const auto& row : impl_->detectors) targets.insert(row->target);
  for (const auto& row : impl_->builders) targets.insert(row->target);
  return {targets.begin(), targets.end()};
}

std::string Runtime::default_target() const {
  MutexLock lock(impl_->mutex);
  return impl_->default_target;
}

absl::Status Runtime::set_default_target(std::string target) {
  load_backends();
  if (!target.empty() && target != kBuiltin && !impl_->knows_target(target)) {
    return with_kind(
        absl::NotFoundError(absl::StrFormat("%s %s; known targets: %s", internal::kUnknownTarget,
                                            target, impl_->known_targets())),
        ErrorKind::unknown_target);
  }
  MutexLock lock(impl_->mutex);
  impl_->default_target = std::move(target);
  return absl::OkStatus();
}

std::vector<std::string> Runtime::op_names() const {
  MutexLock lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, type] : impl_->ops) names.push_back(name);
  return names;
}

absl::StatusOr<const OpType*> Runtime::op_type(std::string_view name) const {
  MutexLock lock(impl_->mutex);
  const auto at = impl_->ops.find(std::string(name));
  if (at != impl_->ops.end()) return at->second.get();
  return absl::NotFoundError(absl::StrFormat(
      "no op %s; there are: %s", std::string(name),
      absl::StrJoin(impl_->ops, ", ",
                    [](std::string* out, const auto& op) { out->append(op.first); })));
}

std::vector<KernelRow> Runtime::kernel_rows(std::string_view op) const {
  MutexLock lock(impl_->mutex);
  std::vector<KernelRow> rows;
  for (const auto& row : impl_->kernels) {
    if (row->op == op) rows.push_back(*row);
  }
  return rows;
}

const Reference* Runtime::reference(std::string_view op) const {
  MutexLock lock(impl_->mutex);
  const auto at = impl_->references.find(std::string(op));
  return at == impl_->references.end() ? nullptr : &at->second;
}

absl::StatusOr<std::unique_ptr<Op>> Runtime::create_op(std::string_view name,
                                                       const ParamValues& params,
                                                       OpOptions op_options) {
  load_backends();
  KILN_ASSIGN_OR_RETURN(const OpType* type, op_type(name));
  op_options.runtime = this;
  return type->create(params, op_options);
}

absl::StatusOr<DeviceSupport*> Runtime::device_support(DeviceType type) {
  MutexLock lock(impl_->mutex);
  const auto at = impl_->supports.find(std::string(type.name()));
  if (at != impl_->supports.end()) return at->second.get();
  return absl::NotFoundError(absl::StrFormat(
      "no device support for %s; registered device types: %s", std::string(type.name()),
      absl::StrJoin(impl_->supports, ", ",
                    [](std::string* out, const auto& s) { out->append(s.first); })));
}

std::vector<DeviceType> Runtime::device_types() const {
  MutexLock lock(impl_->mutex);
  std::vector<DeviceType> types;
  for (const auto& [name, support] : impl_->supports) types.push_back(support->type());
  return types;
}

RuntimeStats Runtime::stats() const {
  const cache::StoreStats store = impl_->store->stats();
  const jit::EngineStats engine = impl_->engine.stats();
  RuntimeStats stats;
  stats.selections = impl_->selections.load();
  stats.entries_built = impl_->entries_built.load();
  stats.entries_dropped = impl_->entries_dropped.load();
  stats.loads = impl_->modules.loads();
  stats.unloads = impl_->modules.unloads();
  stats.compilations = engine.compilations;
  stats.compile_failures = engine.failures;
  stats.memory_hits = store.memory_hits;
  stats.disk_hits = store.disk_hits;
  stats.layer_hits = store.layer_hits;
  stats.remote_hits = store.remote_hits;
  stats.cache_misses = store.misses;
  stats.cache_stored = store.stored;
  stats.cache_evicted = store.evicted;
  stats.cache_quarantined = store.quarantined;
  stats.cache_errors = store.errors;
  if (const auto remote = impl_->store->remote()) {
    stats.remote_misses = remote->stats.misses;
    stats.remote_errors = remote->stats.errors;
    stats.remote_damaged = remote->stats.damaged;
    stats.remote_skipped = remote->stats.skipped;
    stats.remote_stored = remote->stats.stored;
    stats.remote_dropped = remote->stats.dropped;
  }
  stats.cache_bytes_read = store.bytes_read;
  stats.cache_bytes_written = store.bytes_written;
  stats.input_copies = impl_->input_copies.load();
  stats.stand_ins = impl_->stand_ins.load();
  stats.sweeps = impl_->sweeps.load();
  stats.tuned_loads = impl_->tuned_loads.load();
  stats.fact_reads = impl_->fact_reads.load();
  if (impl_->recorder != nullptr) stats.calls_recorded = impl_->recorder->recorded();
  if (impl_->workers != nullptr) {
    const jit::WorkerStats workers = impl_->workers->stats();
    stats.workers_started = workers.started;
    stats.workers_lost = workers.lost;
    stats.compiled_in_process = workers.in_process;
  }
  stats.compile_seconds = absl::ToDoubleSeconds(engine.compile_time);
  return stats;
}

}  // namespace kiln::inline v1
