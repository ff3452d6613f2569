"""Grouped-query decode in PyTorch, torch.compile and flashinfer; the functions are as in gemm_peers.py."""
import torch
import torch.nn.functional as F

PAGE = 64  # keys; of the paged cache that flashinfer takes batches from


def heads_first(t):
    """q [B, H, 1, D] and views of k and v [B, Hkv, S, D]."""
    return t["q"].unsqueeze(2), t["k"].transpose(1, 2), t["v"].transpose(1, 2)


def refuse(w, t, cap=False):
    if t["k"].dtype != t["q"].dtype:
        raise NotImplementedError("keys of float8 are not taken")
    if cap and w["params"]["softcap"]:
        raise NotImplementedError("has no cap")


def eager(w, t, _):
    refuse(w, t, cap=True)
    q, k, v = heads_first(t)
    return lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def packed(w, t, _):
    """The query heads of a group as rows of one query, so that PyTorch reads each key once."""
    refuse(w, t, cap=True)
    q, k, v = heads_first(t)
    batch, heads, _, dim = q.shape
    groups = q.view(batch, k.shape[1], heads // k.shape[1], dim)
    return lambda: F.scaled_dot_product_attention(groups, k, v)


def flex(w, t, _):
    """A cap is what PyTorch's own attention lacks and flex_attention, compiled, has."""
    from torch.nn.attention.flex_attention import flex_attention
    refuse(w, t)
    cap = w["params"]["softcap"]
    if not cap:
        raise NotImplementedError("calls the kernel that torch calls")
    q, k, v = heads_first(t)

    def capped(score, _b, _h, _q, _k):
        return cap * torch.tanh(score / cap)
    torch._dynamo.reset()
    function = torch.compile(flex_attention, dynamic=False)
    return lambda: function(q, k, v, score_mod=capped, enable_gqa=True)


def flashinfer(w, t, _):
    from flashinfer import decode
    batch, seqlen, heads_kv, dim = t["k"].shape
    heads, cap = t["q"].shape[1], w["params"]["softcap"] or None
    scales = {}
    if "k_scale" in t:  # one number for all heads: the workload's are all alike
        scales = {"k_scale": t["k_scale"].flatten()[0].item(), "v_scale": t["v_scale"].flatten()[0].item()}
    if batch == 1:
        q, k, v = t["q"][0], t["k"][0], t["v"][0]
        return lambda: decode.single_decode_with_kv_cache(q, k, v, use_tensor_cores=True, logits_soft_cap=cap, **scales)
    pages = seqlen // PAGE
    if seqlen % PAGE:
        raise NotImplementedError(f"whole pages of {PAGE} keys only")
    wrapper = decode.BatchDecodeWithPagedKVCacheWrapper(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"), "NHD",
                                                        use_tensor_cores=True)
    whole = torch.arange(batch + 1, dtype=torch.int32) * pages
    wrapper.plan(whole, torch.arange(batch * pages, dtype=torch.int32, device="cuda"),
                 torch.full((batch,), PAGE, dtype=torch.int32), heads, heads_kv, dim, PAGE, logits_soft_cap=cap,
                 q_data_type=t["q"].dtype, kv_data_type=t["k"].dtype)
    cache = tuple(t[n].view(batch * pages, PAGE, heads_kv, dim) for n in ("k", "v"))
    out = torch.empty_like(t["q"])
    return lambda: wrapper.run(t["q"], cache, out=out, **scales)


PEERS = {"torch": eager, "torch packed": packed, "torch.compile": flex, "flashinfer": flashinfer}
MODULES = {"torch": "torch", "torch packed": "torch", "torch.compile": "torch", "flashinfer": "flashinfer"}
# What tells apart the libraries that nvcc builds for a peer's calls.
BUILDS = {"flashinfer": lambda w: (w["inputs"][0]["dtype"], w["inputs"][1]["dtype"], w["inputs"][1]["shape"][0] == 1,
                                   w["inputs"][1]["shape"][3], bool(w["params"]["softcap"]))}
