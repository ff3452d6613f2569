"""Gated linear attention in PyTorch, torch.compile and flash-linear-attention; the functions are as in gemm_peers.py."""
import torch


def scale_of(w, t):
    return w["params"]["scale"] or t["q"].shape[-1] ** -0.5


def formula(w, t):
    """One token, as PyTorch writes it."""
    if t["q"].shape[1] != 1:
        raise NotImplementedError("a loop over tokens: thousands of kernels")
    scale = scale_of(w, t)

    def step(q, k, v, g, state):
        q, k, v, g = (x[:, 0].float() for x in (q, k, v, g))
        kv = k.unsqueeze(-1) * v.unsqueeze(-2)
        state = kv if state is None else torch.exp(g).unsqueeze(-1) * state + kv
        return (scale * (q.unsqueeze(-1) * state).sum(-2)).to(t["q"].dtype).unsqueeze(1), state
    return step


def eager(w, t, _):
    step, state = formula(w, t), t.get("initial_state")
    return lambda: step(t["q"], t["k"], t["v"], t["g"], state)


def compiled(w, t, _):
    torch._dynamo.reset()
    step, state = torch.compile(formula(w, t), dynamic=False), t.get("initial_state")
    return lambda: step(t["q"], t["k"], t["v"], t["g"], state)


def fla(w, t, _):
    from fla.ops.gla import chunk_gla, fused_recurrent_gla
    state, scale = t.get("initial_state"), scale_of(w, t)
    if t["q"].shape[1] < 64:
        return lambda: fused_recurrent_gla(t["q"], t["k"], t["v"], gk=t["g"], scale=scale, initial_state=state,
                                           output_final_state=True)
    return lambda: chunk_gla(t["q"], t["k"], t["v"], t["g"], scale=scale, initial_state=state, output_final_state=True)


PEERS = {"torch": eager, "torch.compile": compiled, "fla": fla}
MODULES = {"torch": "torch", "torch.compile": "torch", "fla": "fla.ops.gla"}
