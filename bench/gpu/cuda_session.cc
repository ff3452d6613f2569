#include "bench/gpu/cuda_session.h"

#include <absl/strings/str_format.h>

#include <array>

namespace kiln::bench {
namespace {

template <class F>
absl::Status find(const CudaDriver& driver, const char* symbol, int version, F& function) {
  KILN_ASSIGN_OR_RETURN(void* const address, driver.find(symbol, version));
  function = reinterpret_cast<F>(address);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaSession>> CudaSession::open(int index) {
  std::unique_ptr<CudaSession> session(new CudaSession);
  absl::StatusOr<std::unique_ptr<const CudaDriver>> driver = CudaDriver::open();
  if (!driver.ok()) return annotate(driver.status(), "a benchmark of device work needs a device");
  session->driver_ = *std::move(driver);
  if (!session->driver_->has_devices())
    return absl::FailedPreconditionError(
        "a benchmark of device work needs a device: cuda: the driver sees none");
  KILN_RETURN_IF_ERROR(session->initialise(index));
  return session;
}

absl::Status CudaSession::initialise(int index) {
  const CudaDriver& d = *driver_;
  index_ = index;
  CUdevice device = 0;
  KILN_RETURN_IF_ERROR(d.status(d.device_get(&device, index), "cuDeviceGet"));
  CUcontext context = nullptr;
  KILN_RETURN_IF_ERROR(
      d.status(d.primary_ctx_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  KILN_RETURN_IF_ERROR(d.status(d.ctx_push_current(context), "cuCtxPushCurrent"));
  is_current_ = true;
  KILN_RETURN_IF_ERROR(read_facts(device));
  KILN_RETURN_IF_ERROR(find(d, "cuStreamBeginCapture", 10010, begin_capture_));
  KILN_RETURN_IF_ERROR(find(d, "cuStreamEndCapture", 10000, end_capture_));
  KILN_RETURN_IF_ERROR(find(d, "cuGraphInstantiateWithFlags", 11040, instantiate_));
  KILN_RETURN_IF_ERROR(find(d, "cuGraphLaunch", 10000, graph_launch_));
  KILN_RETURN_IF_ERROR(find(d, "cuGraphExecDestroy", 10000, exec_destroy_));
  KILN_RETURN_IF_ERROR(find(d, "cuGraphDestroy", 10000, graph_destroy_));
  KILN_RETURN_IF_ERROR(find(d, "cuCtxResetPersistingL2Cache", 11000, reset_persisting_));
  KILN_RETURN_IF_ERROR(
      d.status(d.stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  KILN_RETURN_IF_ERROR(d.status(d.event_create(&before_, CU_EVENT_DEFAULT), "cuEventCreate"));
  KILN_RETURN_IF_ERROR(d.status(d.event_create(&behind_, CU_EVENT_DEFAULT), "cuEventCreate"));
  KILN_ASSIGN_OR_RETURN(flush_buffer_, allocate(flush_bytes_));
  return absl::OkStatus();
}

absl::Status CudaSession::read_facts(CUdevice device) {
  const CudaDriver& d = *driver_;
  std::array<char, 256> name{};
  KILN_RETURN_IF_ERROR(
      d.status(d.device_get_name(name.data(), name.size(), device), "cuDeviceGetName"));
  name_ = name.data();
  PFN_cuDeviceGetPCIBusId_v4010 get_bus_id = nullptr;
  KILN_RETURN_IF_ERROR(find(d, "cuDeviceGetPCIBusId", 4010, get_bus_id));
  std::array<char, 32> bus_id{};
  KILN_RETURN_IF_ERROR(
      d.status(get_bus_id(bus_id.data(), bus_id.size(), device), "cuDeviceGetPCIBusId"));
  pci_bus_id_ = bus_id.data();
  int l2 = 0;
  KILN_RETURN_IF_ERROR(
      d.status(d.device_get_attribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device), "L2 size"));
  KILN_RETURN_IF_ERROR(
      d.status(d.device_get_attribute(&sm_count_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
               "multiprocessors"));
  l2_bytes_ = static_cast<std::size_t>(l2);
  constexpr std::size_t kStep = std::size_t{32} << 20;
  flush_bytes_ = (2 * l2_bytes_ + kStep - 1) / kStep * kStep;
  return absl::OkStatus();
}

// Streams, events and memory are left to the end of the process; the context's current place is
// not.
CudaSession::~CudaSession() {
  CUcontext popped = nullptr;
  if (is_current_) (void)driver_->ctx_pop_current(&popped);
}

absl::StatusOr<CUdeviceptr> CudaSession::allocate(std::size_t bytes) const {
  CUdeviceptr memory = 0;
  KILN_RETURN_IF_ERROR(driver_->status(driver_->mem_alloc(&memory, bytes),
                                       absl::StrFormat("cuMemAlloc of %u bytes", bytes)));
  return memory;
}

absl::Status CudaSession::free(CUdeviceptr memory) const {
  return driver_->status(driver_->mem_free(memory), "cuMemFree");
}

absl::Status CudaSession::synchronize(CUstream stream) const {
  return driver_->status(driver_->stream_synchronize(stream), "cuStreamSynchronize");
}

absl::Status CudaSession::flush_l2(CUstream stream) const {
  KILN_RETURN_IF_ERROR(driver_->status(reset_persisting_(), "cuCtxResetPersistingL2Cache"));
  return driver_->status(driver_->memset_d8_async(flush_buffer_, 0, flush_bytes_, stream),
                         "cuMemsetD8Async");
}

absl::StatusOr<double> CudaSession::event_us(CUstream stream,
                                             const std::function<absl::Status()>& body) const {
  const CudaDriver& d = *driver_;
  KILN_RETURN_IF_ERROR(d.status(d.event_record(before_, stream), "cuEventRecord"));
  KILN_RETURN_IF_ERROR(body());
  KILN_RETURN_IF_ERROR(d.status(d.event_record(behind_, stream), "cuEventRecord"));
  KILN_RETURN_IF_ERROR(d.status(d.event_synchronize(behind_), "cuEventSynchronize"));
  float ms = 0;
  KILN_RETURN_IF_ERROR(d.status(d.event_elapsed_time(&ms, before_, behind_), "cuEventElapsedTime"));
  return static_cast<double>(ms) * 1e3;
}

absl::StatusOr<std::unique_ptr<CudaSession::Graph>> CudaSession::record(
    CUstream stream, const std::function<absl::Status()>& body) const {
  const CudaDriver& d = *driver_;
  // Relaxed: what a framework allocates while it is recorded is its own business.
  KILN_RETURN_IF_ERROR(
      d.status(begin_capture_(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture"));
  const absl::Status recorded = body();
  CUgraph graph = nullptr;
  const absl::Status ended = d.status(end_capture_(stream, &graph), "cuStreamEndCapture");
  KILN_RETURN_IF_ERROR(recorded);
  KILN_RETURN_IF_ERROR(ended);
  CUgraphExec exec = nullptr;
  const absl::Status made = d.status(instantiate_(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  (void)graph_destroy_(graph);
  KILN_RETURN_IF_ERROR(made);
  return std::make_unique<Graph>(*this, exec);
}

CudaSession::Graph::~Graph() { (void)session_.exec_destroy_(exec_); }

absl::Status CudaSession::Graph::launch(CUstream stream) const {
  return session_.driver_->status(session_.graph_launch_(exec_, stream), "cuGraphLaunch");
}

}  // namespace kiln::bench
