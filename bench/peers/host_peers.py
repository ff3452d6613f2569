"""What one call costs the host: a layer normalization's launch by Kiln, CuPy, Triton and PyTorch, and the driver alone.

Each is called as its users call it: Kiln from C++, the others from Python. The device is idle before each round, and a
round is short enough that the driver's queue takes all of it.
"""
import time

CALLS, ROUNDS = 200, 25

TYPES = {"float16": "__half", "bfloat16": "__nv_bfloat16"}

CUPY_SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ void store(float v, __half* to) { *to = __float2half(v); }
__device__ void store(float v, __nv_bfloat16* to) { *to = __float2bfloat16(v); }
extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, T* y, int n, float eps) {
  __shared__ float parts[32];
  const T* row = x + (long long)blockIdx.x * n;
  float mean = 0, square = 0;
  for (int pass = 0; pass < 2; ++pass) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const float v = to_float(row[i]) - mean;
      sum += pass ? v * v : v;
    }
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += parts[w];
    (pass ? square : mean) = sum / n;
  }
  const float scale = rsqrtf(square + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    store((to_float(row[i]) - mean) * scale * to_float(weight[i]) + to_float(bias[i]),
          y + (long long)blockIdx.x * n + i);
}
"""


def serves(w):
    names = {i["name"] for i in w["inputs"] if i}
    return w["op"] == "LayerNormFwdOp" and {"weight", "bias"} <= names and w["inputs"][0]["dtype"] in TYPES


def cupy_kernel(w, t, stream):
    import cupy
    import torch
    n, x = w["params"]["normalized_shape"][-1], t["x"]
    kernel = cupy.RawKernel(CUPY_SOURCE, "layer_norm",
                            options=("--std=c++17", "-DT=" + TYPES[w["inputs"][0]["dtype"]]))
    y = torch.empty_like(x)
    arrays = [cupy.asarray(tensor.view(torch.int16)) for tensor in (x, t["weight"], t["bias"], y)]
    args = (*arrays, cupy.int32(n), cupy.float32(w["params"]["eps"]))
    on = cupy.cuda.ExternalStream(stream.cuda_stream)
    rows = x.numel() // n

    def call():
        with on:
            kernel((rows,), (256,), args)
        return y
    return call


def triton_kernel(w, t, _):
    import norm_peers
    return norm_peers.triton_kernel(w, t, None)


def torch_kernel(w, t, _):
    import norm_peers
    return norm_peers.eager(w, t, None)


PEERS = {"cupy RawKernel": ("cupy", cupy_kernel), "triton": ("triton", triton_kernel), "torch": ("torch", torch_kernel)}


def spread(values):
    """As bench/gpu's: interpolated."""
    values = sorted(values)

    def at(share):
        place = share * (len(values) - 1)
        below = int(place)
        return values[below] + (place - below) * (values[min(below + 1, len(values) - 1)] - values[below])
    return {"median": at(0.5), "p10": at(0.1), "p90": at(0.9), "count": len(values)}


def host_us(function, stream):
    us = []
    for _ in range(ROUNDS + 1):
        stream.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            function()
        us.append((time.perf_counter_ns() - begin) * 1e-3 / CALLS)
    stream.synchronize()
    return us[1:]


def timing(name, us):
    return {"name": name, "clock": "host", "us": spread(us)}


def rows(suite, index, w, inputs, outputs, stream, notes, difference):
    call = suite.prepare(index)
    try:
        call.bind(stream.cuda_stream, [inputs[s["name"]].data_ptr() if s else None for s in w["inputs"]],
                  [o.data_ptr() for o in outputs])
        stream.synchronize()
        call.run()
        stream.synchronize()
        contenders = [timing("kiln", suite.host_us(stream.cuda_stream, call.handle, CALLS, ROUNDS)),
                      timing("driver launch alone", suite.host_us(stream.cuda_stream, -1, CALLS, ROUNDS))]
        for name, (module, make) in PEERS.items():
            try:
                notes.setdefault(name, getattr(__import__(module), "__version__", "?"))
                function = make(w, inputs, stream)
                y = function()
                one = timing(name, host_us(function, stream))
                contenders.append({**one, "difference_from_kiln": difference(outputs[0], y)})
            except Exception as e:  # pylint: disable=broad-except
                contenders.append({"name": name, "unavailable": f"{type(e).__name__}: {e}".split("\n")[0][:300]})
        return [{"name": f"host time: {w['name']}", "family": "host time", "contenders": contenders}]
    finally:
        stream.synchronize()
        call.release()
