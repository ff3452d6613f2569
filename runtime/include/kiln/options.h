#ifndef KILN_OPTIONS_H_
#define KILN_OPTIONS_H_

#include <kiln/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::inline v1 {

class Runtime;

// What happens when a call needs something that is not built.
enum class CompilePolicy {
  block,  // compile it, the call waits (at most for the compile deadline)
  async,  // compile it behind the call, which another implementation serves meanwhile: selection is
          // run again over those that are built already. The call waits where that leaves none, or
          // not one
  forbid,  // an error that names what is missing and the command that warms it
};

// How one op instance behaves.
struct OpOptions {
  Runtime* runtime = nullptr;           // null: the process's own, `Runtime::instance()`
  std::string target;                   // empty: settled by the first call; kBuiltin: in-tree
  std::optional<CompilePolicy> policy;  // none: the runtime's
  std::optional<double> compile_deadline_seconds;  // none: the runtime's
  bool strict = false;        // refuse inputs that are not contiguous instead of copying them
  bool record_calls = false;  // keep `last_call()`
  // To settle a clash without touching either side: only these keys take part; these do not; these
  // win over all others that serve a call (the first that serves it).
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::vector<std::string> prefer;
};

// A store that machines share: Redis, Valkey, or anything that keeps what is PUT by HTTP.
// Credentials are never logged and stand in no error.
struct RemoteCacheOptions {
  std::string url;  // KILN_CACHE_REMOTE: redis://, rediss:// (TLS), http://, https://, s3+http://
                    // or s3+https://, perhaps with user:password@; empty: none
  std::string user, password;  // KILN_CACHE_REMOTE_USER, _PASSWORD: instead of those in the URL
  std::string token;           // KILN_CACHE_REMOTE_TOKEN: HTTP bearer token, instead of them
  // AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION: sign requests to
  // s3+http:// and s3+https://, where user and password do not
  std::string aws_access_key, aws_secret_key, aws_session_token, aws_region;
  std::string ca_file;  // KILN_CACHE_REMOTE_CA: whom TLS trusts, PEM; empty: whom the system trusts
  double timeout_seconds =
      1;  // KILN_CACHE_REMOTE_TIMEOUT: of one request; of a write, ten times it
  std::int64_t max_bytes = std::int64_t{64} << 20;  // KILN_CACHE_REMOTE_MAX_BYTES: of one artifact
  bool read_only = false;  // KILN_CACHE_REMOTE_WRITE=0: nothing is written to it
};

// How a runtime behaves. `from_environment` reads KILN_* and AWS_* once; nothing else in the
// library reads the environment.
struct RuntimeOptions {
  std::string cache_dir;                                 // empty: no disk tier
  std::int64_t cache_max_bytes = std::int64_t{4} << 30;  // KILN_CACHE_MAX_BYTES; 0: no limit
  std::vector<std::string>
      cache_layers;                 // KILN_CACHE_LAYERS: read-only folders and packs, parted by ':'
  bool cache_group_shared = false;  // KILN_CACHE_SHARED=group: the folder's group is trusted
  bool cache_write_behind =
      true;                  // KILN_CACHE_WRITE_BEHIND=0: a build waits until it is on the disk
  std::string trusted_keys;  // KILN_TRUSTED_KEYS: public keys, parted by ','; then packs and what
                             // a remote cache sends must be signed
  std::string signing_key_file;  // KILN_SIGNING_KEY: signs what is written to the remote cache
  RemoteCacheOptions cache_remote;
  bool any_compiler =
      false;  // KILN_COMPILER_MATCH=any: what another compiler made is preferred to compiling
  CompilePolicy policy = CompilePolicy::block;  // KILN_COMPILE=block|async|forbid
  // KILN_COMPILE_DEADLINE: how long a call waits for what is not built; then it fails with
  // DeadlineExceeded, and the build goes on behind it. 0: as long as it takes.
  double compile_deadline_seconds = 0;
  // KILN_MAX_ENTRIES: built entries that one interface of one op keeps; 0: no limit. A call beyond
  // it is served more slowly: by an entry that is looked up under a lock, is not tuned and makes
  // room for others again, so the call waits for its work. What was captured or had from
  // `Op::kernel_for` is kept all the same. An eighth as many images that nobody uses stay loaded.
  std::int64_t max_entries = 4096;
  bool strict_cache = false;
  bool use_tuned = true;    // KILN_TUNED=off: stored winners of tuning sweeps are left alone
  std::string kernel_path;  // KILN_KERNEL_PATH: embedded sources are read from here instead
  std::string nvrtc;        // KILN_NVRTC: libnvrtc to open; empty: looked for
  std::string cuda_home;    // CUDA_HOME, else CUDA_PATH: the toolkit; empty: /usr/local/cuda
  int jobs =
      -1;  // KILN_JOBS: compile workers at most; 0: compile in this process; -1: one a usable core
  std::string compile_worker;  // KILN_COMPILE_WORKER: the worker's file; empty: looked for beside
                               // the library
  double compile_limit_seconds = 120;  // KILN_COMPILE_LIMIT: of one compilation in a worker
  std::int64_t compile_memory_bytes = 4ll << 30;  // KILN_COMPILE_MEMORY: resident, of one worker
  std::string cxx;                        // KILN_CXX: host compiler of the CPU backend; empty: c++
  std::vector<std::string> backend_path;  // KILN_BACKEND_PATH: folders and files
  bool load_installed_backends = true;    // those beside the library; tests leave them out
  std::vector<std::string> disabled_backends;      // KILN_DISABLE_BACKENDS
  std::vector<std::string> only, exclude, prefer;  // KILN_SELECT="only=a,b;exclude=c;prefer=d"
  std::string record_calls_file;  // KILN_RECORD_CALLS: each distinct call is appended to it, once
  std::string trace_file;         // KILN_TRACE: spans for Perfetto are appended to it
  bool log_selection = false;     // KILN_LOG=select
  KILN_EXPORT static RuntimeOptions from_environment();
};

}  // namespace kiln::inline v1

#endif  // KILN_OPTIONS_H_
