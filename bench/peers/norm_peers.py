"""The normalization workloads in PyTorch, torch.compile, Triton, flashinfer and Liger.

Each function takes a workload, its tensors by name and the suite, and returns a function of no arguments that enqueues
one call and returns y. What a library does not have raises NotImplementedError with the reason.
"""
import math

import torch
import torch.nn.functional as F


def formula(w, t):
    """The op as PyTorch writes it: a function of the tensors in t, and those tensors."""
    op, p = w["op"], w["params"]
    eps = p["eps"]
    x, weight, bias = t["x"], t.get("weight"), t.get("bias")
    shape = p.get("normalized_shape")
    if op == "LayerNormFwdOp":
        return lambda: F.layer_norm(x, shape, weight, bias, eps)
    if op == "RMSNormFwdOp":
        return lambda: F.rms_norm(x, shape, weight, eps)
    if op == "FusedAddLayerNormFwdOp":
        def add_layer_norm():
            s = x + t["residual"]
            return F.layer_norm(s, shape, weight, bias, eps), s
        return add_layer_norm
    if op == "FusedAddRMSNormFwdOp":
        def add_rms_norm():
            s = x + t["residual"]
            return F.rms_norm(s, shape, weight, eps), s
        return add_rms_norm
    if op == "AdaLayerNormFwdOp":
        return lambda: t["scale"] * F.layer_norm(x, shape, None, None, eps) + t["shift"]
    if op == "AdaLayerNormZeroFwdOp":
        return lambda: t["gate"] * (t["scale"] * F.layer_norm(x, shape, None, None, eps) + t["shift"])
    mean, var = t.get("running_mean"), t.get("running_var")
    if op == "BatchNormFwdOp":
        return lambda: F.batch_norm(x, mean, var, weight, bias, p["training"], p["momentum"], eps)
    if op == "InstanceNormFwdOp":
        return lambda: F.instance_norm(x, mean, var, weight, bias, p["use_input_stats"], p["momentum"], eps)
    if op == "GroupNormFwdOp":
        return lambda: F.group_norm(x, p["num_groups"], weight, bias, eps)
    raise NotImplementedError(f"{op}: no formula")


def eager(w, t, _):
    return formula(w, t)


def compiled(w, t, _):
    # One workload's guards and limits are not the next one's.
    torch._dynamo.reset()
    return torch.compile(formula(w, t), dynamic=False)


ROW_OPS = {"LayerNormFwdOp": True, "RMSNormFwdOp": False, "FusedAddLayerNormFwdOp": True,
           "FusedAddRMSNormFwdOp": False, "AdaLayerNormFwdOp": True, "AdaLayerNormZeroFwdOp": True}


def row_length(w):
    return math.prod(w["params"]["normalized_shape"])


def triton_kernel(w, t, _):
    if w["op"] not in ROW_OPS:
        raise NotImplementedError("written for the row norms alone")
    import triton_norm
    return triton_norm.make(t, row_length(w), w["params"]["eps"], ROW_OPS[w["op"]])


def flashinfer(w, t, _):
    from flashinfer import norm
    eps = w["params"]["eps"]
    if w["op"] not in ("RMSNormFwdOp", "FusedAddRMSNormFwdOp", "LayerNormFwdOp"):
        raise NotImplementedError("has no such op")
    n = row_length(w)
    x = t["x"].view(-1, n)
    if "weight" not in t:
        raise NotImplementedError("wants a weight")
    if x.dtype == torch.float32:
        raise NotImplementedError("16-bit dtypes only")
    if w["op"] == "RMSNormFwdOp":
        y = torch.empty_like(x)
        return lambda: norm.rmsnorm(x, t["weight"], eps, out=y)
    if w["op"] == "LayerNormFwdOp":
        if "bias" not in t or x.dtype != torch.bfloat16:
            raise NotImplementedError("bfloat16 with weight and bias only")
        weight, bias = t["weight"].float(), t["bias"].float()
        return lambda: norm.layernorm(x, weight, bias, eps)
    # In place: these are its own, and they change with every call.
    own_x, own_residual = x.clone(), t["residual"].view(-1, n).clone()

    def add_rms_norm():
        norm.fused_add_rmsnorm(own_x, own_residual, t["weight"], eps)
    return add_rms_norm


def liger(w, t, _):
    eps = w["params"]["eps"]
    x, weight, bias = t["x"], t.get("weight"), t.get("bias")
    if w["op"] == "RMSNormFwdOp":
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
        if weight is None:
            raise NotImplementedError("wants a weight")
        return lambda: LigerRMSNormFunction.apply(x, weight, eps, 0.0, "gemma", False)
    if w["op"] == "FusedAddRMSNormFwdOp":
        from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
        return lambda: LigerFusedAddRMSNormFunction.apply(x, t["residual"], weight, eps, 0.0, "gemma", False)
    if w["op"] == "LayerNormFwdOp":
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        if weight is None or bias is None:
            raise NotImplementedError("wants weight and bias")
        return lambda: LigerLayerNormFunction.apply(x, weight, bias, eps)
    if w["op"] == "GroupNormFwdOp":
        from liger_kernel.ops.group_norm import LigerGroupNormFunction
        flat = x.view(x.shape[0], x.shape[1], -1)
        return lambda: LigerGroupNormFunction.apply(flat, weight, bias, x.shape[1], w["params"]["num_groups"], eps)
    raise NotImplementedError("has no such op")


PEERS = {"torch": eager, "torch.compile": compiled, "triton": triton_kernel, "flashinfer": flashinfer, "liger": liger}
MODULES = {"torch": "torch", "torch.compile": "torch", "triton": "triton", "flashinfer": "flashinfer",
           "liger": "liger_kernel"}
BUILDS = {"flashinfer": lambda w: w["op"]}  # as in attention_peers.py
