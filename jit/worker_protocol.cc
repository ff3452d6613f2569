#include "jit/worker_protocol.h"

#include <kiln/status.h>

#include "base/hash128.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_format.h>

#include <utility>
#include <vector>

namespace kiln::jit {
namespace {

constexpr std::string_view kMagic = "KLNW";

void append_number(std::string& out, std::uint64_t value, int bytes = 8) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
    value |= static_cast<std::uint64_t>(byte) << (8 * i);
  }
  return value;
}

std::uint64_t checksum(std::string_view payload) { return hash128(payload).low; }

void append(std::string& out, std::string_view text) { append_length_prefixed(out, text); }
void append(std::string& out, std::int64_t value) {
  append_number(out, static_cast<std::uint64_t>(value));
}
void append(std::string& out, const std::vector<std::string>& list) {
  append_number(out, list.size());
  for (const std::string& item : list) append(out, item);
}

// Reads fields from the front; once something does not fit it gives empty values and `end` says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::int64_t number() {
    if (rest_.size() < 8) return fail(), 0;
    const std::uint64_t value = number_at(rest_, 0, 8);
    rest_.remove_prefix(8);
    return static_cast<std::int64_t>(value);
  }
  std::string text() {
    const auto size = static_cast<std::uint64_t>(number());
    if (size > rest_.size()) return fail(), std::string();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  // Of a list whose items take at least 8 bytes each.
  std::size_t count() {
    const auto value = static_cast<std::uint64_t>(number());
    if (value > rest_.size() / 8) return fail(), 0;
    return value;
  }
  std::vector<std::string> list() {
    std::vector<std::string> items(count());
    for (std::string& item : items) item = text();
    return items;
  }
  absl::Status end(std::string_view what) const {
    if (!failed_ && rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat(
        "worker protocol: a payload must be exactly one %s: got %s", std::string(what),
        failed_ ? std::string("too few bytes") : absl::StrFormat("%d bytes more", rest_.size())));
  }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::string encode_frame(MessageType type, std::string_view payload) {
  std::string frame;
  frame.reserve(kFrameHeaderBytes + payload.size());
  frame.append(kMagic);
  append_number(frame, kWorkerProtocolVersion, 2);
  append_number(frame, static_cast<std::uint16_t>(type), 2);
  append_number(frame, payload.size());
  append_number(frame, checksum(payload));
  frame.append(payload);
  return frame;
}

absl::StatusOr<FrameHeader> decode_header(std::string_view bytes) {
  if (bytes.size() != kFrameHeaderBytes || bytes.substr(0, 4) != kMagic) {
    return absl::DataLossError(
        absl::StrFormat("worker protocol: a frame must begin with KLNW: got '%s'",
                        absl::CHexEscape(std::string(bytes.substr(0, 16)))));
  }
  const std::uint64_t version = number_at(bytes, 4, 2);
  if (version != kWorkerProtocolVersion) {
    return absl::DataLossError(
        absl::StrFormat("worker protocol: both sides must speak the same version: want %d, got %d",
                        kWorkerProtocolVersion, version));
  }
  FrameHeader header;
  const std::uint64_t type = number_at(bytes, 6, 2);
  header.type = static_cast<MessageType>(type);
  header.size = number_at(bytes, 8, 8);
  header.checksum = number_at(bytes, 16, 8);
  if (type < static_cast<std::uint64_t>(MessageType::setup) ||
      type > static_cast<std::uint64_t>(MessageType::failure) || header.size > kMaxPayloadBytes) {
    return absl::DataLossError(
        absl::StrFormat("worker protocol: want a message type from 1 to 5 and at most %d bytes, "
                        "got type %d and %d bytes",
                        kMaxPayloadBytes, type, header.size));
  }
  return header;
}

absl::Status check_payload(const FrameHeader& header, std::string_view payload) {
  if (payload.size() == header.size && checksum(payload) == header.checksum)
    return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "worker protocol: a payload of %d bytes does not match its checksum", payload.size()));
}

std::string encode(const WorkerSetup& setup) {
  std::string out;
  append(out, setup.nvrtc.library);
  append(out, setup.nvrtc.cuda_home);
  append(out, setup.nvrtc.include_dir);
  append(out, setup.memory_limit_bytes);
  append(out, setup.idle_ms);
  append(out, setup.parent);
  return out;
}

absl::Status decode(std::string_view payload, WorkerSetup& setup) {
  Reader in(payload);
  setup.nvrtc.library = in.text();
  setup.nvrtc.cuda_home = in.text();
  setup.nvrtc.include_dir = in.text();
  setup.memory_limit_bytes = in.number();
  setup.idle_ms = in.number();
  setup.parent = in.number();
  return in.end("setup");
}

std::string encode(const CompilerId& id) {
  std::string out;
  append(out, id.name);
  append(out, id.build);
  append(out, id.headers);
  return out;
}

absl::Status decode(std::string_view payload, CompilerId& id) {
  Reader in(payload);
  id.name = in.text();
  id.build = in.text();
  id.headers = in.text();
  return in.end("hello");
}

std::string encode(const CompileRequest& request) {
  std::string out;
  append(out, request.source_name);
  append(out, request.source);
  append_number(out, request.headers.size());
  for (const auto& [name, contents] : request.headers) {
    append(out, name);
    append(out, contents);
  }
  append(out, request.defines);
  append(out, request.options);
  append(out, request.kernels);
  append(out, request.target);
  return out;
}

absl::Status decode(std::string_view payload, CompileRequest& request) {
  Reader in(payload);
  request.source_name = in.text();
  request.source = in.text();
  request.headers.resize(in.count());
  for (auto& [name, contents] : request.headers) {
    name = in.text();
    contents = in.text();
  }
  request.defines = in.list();
  request.options = in.list();
  request.kernels = in.list();
  request.target = in.text();
  return in.end("request");
}

std::string encode(const CompileResult& result) {
  std::string out;
  append(out, result.kind);
  append(out, result.image);
  append_number(out, result.kernels.size());
  for (const KernelInfo& kernel : result.kernels) {
    append(out, kernel.name);
    append(out, kernel.registers);
    append(out, kernel.static_smem_bytes);
    append(out, kernel.spill_bytes);
    append(out, kernel.stack_bytes);
  }
  append(out, result.log);
  return out;
}

absl::Status decode(std::string_view payload, CompileResult& result) {
  Reader in(payload);
  result.kind = in.text();
  result.image = in.text();
  result.kernels.resize(in.count());
  for (KernelInfo& kernel : result.kernels) {
    kernel.name = in.text();
    kernel.registers = in.number();
    kernel.static_smem_bytes = in.number();
    kernel.spill_bytes = in.number();
    kernel.stack_bytes = in.number();
  }
  result.log = in.text();
  return in.end("result");
}

std::string encode(const absl::Status& failure) {
  std::string out;
  append(out, static_cast<std::int64_t>(failure.code()));
  append(out, static_cast<std::int64_t>(error_kind(failure)));
  append(out, message_of(failure));
  return out;
}

absl::Status decode_failure(std::string_view payload) {
  Reader in(payload);
  const std::int64_t code = in.number();
  const std::int64_t kind = in.number();
  const std::string message = in.text();
  KILN_RETURN_IF_ERROR(in.end("failure"));
  if (code < 1 || code > 16 || kind < 0 ||
      kind > static_cast<std::int64_t>(ErrorKind::compile_error)) {
    return absl::DataLossError(absl::StrFormat(
        "worker protocol: a failure must have a code and a kind: got %d and %d", code, kind));
  }
  absl::Status failure(static_cast<absl::StatusCode>(code), message);
  return kind == 0 ? failure : with_kind(std::move(failure), static_cast<ErrorKind>(kind));
}

}  // namespace kiln::jit
