"""The matrix products in PyTorch, Triton and cuBLASLt: d = a . b^T.

Each function takes a workload, its tensors by name and the suite, and returns a function of no arguments that enqueues
one call and returns d, or what the suite times itself. What a library does not have raises NotImplementedError with the
reason.
"""
import torch


def eager(w, t, _):
    d = torch.empty(w["outputs"][0]["shape"], dtype=t["a"].dtype, device="cuda")
    b = t["b"].t()
    return lambda: torch.matmul(t["a"], b, out=d)


def compiled(w, t, _):
    raise NotImplementedError("calls the same kernel of cuBLAS as torch does, unless it is told to search for minutes")


def triton_kernel(w, t, _):
    import triton_gemm
    return triton_gemm.make(t["a"], t["b"])


def cublaslt(w, t, suite):
    d = torch.empty(w["outputs"][0]["shape"], dtype=t["a"].dtype, device="cuda")
    return suite.cublaslt(torch.cuda.current_stream().cuda_stream, t["a"], t["b"], d)


PEERS = {"torch": eager, "torch.compile": compiled, "cublaslt": cublaslt, "triton": triton_kernel}
MODULES = {"torch": "torch", "torch.compile": "torch", "cublaslt": "torch", "triton": "triton"}
