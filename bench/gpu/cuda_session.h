#ifndef KILN_BENCH_GPU_CUDA_SESSION_H_
#define KILN_BENCH_GPU_CUDA_SESSION_H_

#include <kiln/status.h>

#include "runtime/cuda_driver.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace kiln::bench {

// One device for a benchmark: its primary context, current on the thread that opened it, and what a
// measurement needs of the driver beyond Kiln. Driven by that thread alone; ends with the process.
class CudaSession {
 public:
  // Errors: FailedPrecondition without a driver or a device; NotFound for an index that is not
  // there.
  static absl::StatusOr<std::unique_ptr<CudaSession>> open(int index);
  ~CudaSession();

  const CudaDriver& driver() const { return *driver_; }
  int index() const { return index_; }
  const std::string& name() const { return name_; }
  const std::string& pci_bus_id() const { return pci_bus_id_; }
  int sm_count() const { return sm_count_; }
  std::size_t l2_bytes() const { return l2_bytes_; }
  // Bytes that `flush_l2` writes: twice the L2, rounded up to 32 MiB.
  std::size_t flush_bytes() const { return flush_bytes_; }
  CUstream stream() const { return stream_; }  // of this session's own

  absl::StatusOr<CUdeviceptr> allocate(std::size_t bytes) const;
  absl::Status free(CUdeviceptr memory) const;
  absl::Status synchronize(CUstream stream) const;

  // Zeroes a buffer that pushes everything else out of the L2, and gives up persisting lines.
  absl::Status flush_l2(CUstream stream) const;

  // Time on the stream between an event before `body` and one behind it; waits for both.
  absl::StatusOr<double> event_us(CUstream stream, const std::function<absl::Status()>& body) const;

  // A graph of what `body` enqueues. Errors also where it does what cannot be recorded.
  class Graph {
   public:
    Graph(const CudaSession& session, CUgraphExec exec) : session_(session), exec_(exec) {}
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ~Graph();
    absl::Status launch(CUstream stream) const;

   private:
    const CudaSession& session_;
    CUgraphExec exec_;
  };
  absl::StatusOr<std::unique_ptr<Graph>> record(CUstream stream,
                                                const std::function<absl::Status()>& body) const;

 private:
  CudaSession() = default;
  absl::Status initialise(int index);
  absl::Status read_facts(CUdevice device);

  std::unique_ptr<const CudaDriver> driver_;
  int index_ = 0;
  bool is_current_ = false;
  std::string name_, pci_bus_id_;
  int sm_count_ = 0;
  std::size_t l2_bytes_ = 0, flush_bytes_ = 0;
  CUdeviceptr flush_buffer_ = 0;
  CUstream stream_ = nullptr;
  CUevent before_ = nullptr, behind_ = nullptr;
  PFN_cuStreamBeginCapture_v10010 begin_capture_ = nullptr;
  PFN_cuStreamEndCapture_v10000 end_capture_ = nullptr;
  PFN_cuGraphInstantiateWithFlags_v11040 instantiate_ = nullptr;
  PFN_cuGraphLaunch_v10000 graph_launch_ = nullptr;
  PFN_cuGraphExecDestroy_v10000 exec_destroy_ = nullptr;
  PFN_cuGraphDestroy_v10000 graph_destroy_ = nullptr;
  PFN_cuCtxResetPersistingL2Cache_v11000 reset_persisting_ = nullptr;
};

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_CUDA_SESSION_H_
