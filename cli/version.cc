#include <kiln/options.h>
#include <kiln/version.h>

#include "base/printable.h"
#include "cache/artifact.h"
#include "cache/pack_layout.h"
#include "cli/session.h"
#include "jit/nvrtc_library.h"
#include "jit/worker_protocol.h"

#include <absl/strings/str_format.h>
#include <cuda.h>

namespace kiln::cli {

std::string version_text() {
  const RuntimeOptions options = RuntimeOptions::from_environment();
  const absl::StatusOr<jit::NvrtcLibrary> nvrtc = jit::load_nvrtc(
      {.library = options.nvrtc, .cuda_home = options.cuda_home, .include_dir = ""});
  return printable(absl::StrFormat(
      "kiln %s\nartifact format %d, pack format %d, worker protocol %d\n"
      "built with CUDA headers %d.%d\nNVRTC %s",
      KILN_VERSION_STRING, cache::kArtifactFormatVersion, cache::pack_layout::kVersion,
      jit::kWorkerProtocolVersion, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10,
      nvrtc.ok() ? absl::StrFormat("%d.%d, %s", nvrtc->major, nvrtc->minor, nvrtc->path)
                 : std::string("not found (kiln doctor says more)")));
}

}  // namespace kiln::cli
