#ifndef KILN_JIT_WORKER_PROTOCOL_H_
#define KILN_JIT_WORKER_PROTOCOL_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include "jit/nvrtc_library.h"

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What a process and its compile workers say to each other. One frame after the other over one
// stream socket:
//
//   frame   = magic "KLNW", version u16, type u16, size u64, checksum u64, payload; the
//           checksum is the low half of the payload's XXH3-128
//   payload = fields; numbers are 8 bytes, strings their length and their bytes; lists their count
//   first
//
// All numbers are little-endian. Host -> worker: one setup, then requests. Worker -> host: one
// hello, or a failure, for the setup; a result or a failure for each request. The version is raised
// with every change: both sides come from one build, and a worker of another is not used.
namespace kiln::jit {

inline constexpr std::uint16_t kWorkerProtocolVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 24;
// More than any image: a size beyond it is garbage, not a message.
inline constexpr std::uint64_t kMaxPayloadBytes = 1ull << 30;

enum class MessageType : std::uint16_t { setup = 1, hello, request, result, failure };

struct Frame {
  MessageType type = MessageType::failure;
  std::string payload;
};

// What the header says of the payload that follows it.
struct FrameHeader {
  MessageType type = MessageType::failure;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;
};

// How a worker is to behave.
struct WorkerSetup {
  NvrtcOptions nvrtc;
  std::int64_t memory_limit_bytes = 0;  // resident memory; 0: none
  std::int64_t idle_ms = 0;             // it ends after this long without a request
  std::int64_t parent = 0;              // the host's process number
};

KILN_EXPORT std::string encode_frame(MessageType type, std::string_view payload);
// DataLoss when `bytes` (kFrameHeaderBytes of them) are no header of this version; says what they
// are instead.
KILN_EXPORT absl::StatusOr<FrameHeader> decode_header(std::string_view bytes);
KILN_EXPORT absl::Status check_payload(const FrameHeader& header, std::string_view payload);

// Payloads and back. DataLoss: the bytes are not exactly one such message.
KILN_EXPORT std::string encode(const WorkerSetup& setup);
KILN_EXPORT std::string encode(const CompilerId& id);
KILN_EXPORT std::string encode(const CompileRequest& request);
KILN_EXPORT std::string encode(const CompileResult& result);
KILN_EXPORT std::string encode(const absl::Status& failure);  // with its ErrorKind
KILN_EXPORT absl::Status decode(std::string_view payload, WorkerSetup& setup);
KILN_EXPORT absl::Status decode(std::string_view payload, CompilerId& id);
KILN_EXPORT absl::Status decode(std::string_view payload, CompileRequest& request);
KILN_EXPORT absl::Status decode(std::string_view payload, CompileResult& result);
// Never ok: a payload that is no failure is DataLoss.
KILN_EXPORT absl::Status decode_failure(std::string_view payload);

}  // namespace kiln::jit

#endif  // KILN_JIT_WORKER_PROTOCOL_H_
