"""A plain Triton kernel of the row norms: a program a row, which it holds whole."""
import torch
import triton
import triton.language as tl

LARGEST_ROW = 65536


@triton.jit
def row_norm(x_ptr, residual_ptr, weight_ptr, bias_ptr, scale_ptr, shift_ptr, gate_ptr, y_ptr, sum_ptr, n, eps,
             CENTRED: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, ADDS: tl.constexpr,
             MODULATED: tl.constexpr, GATED: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = column < n
    x = tl.load(x_ptr + base + column, mask=inside, other=0.0)
    if ADDS:
        residual = tl.load(residual_ptr + base + column, mask=inside, other=0.0)
        x = (x.to(tl.float32) + residual.to(tl.float32)).to(x_ptr.dtype.element_ty)
        tl.store(sum_ptr + base + column, x, mask=inside)
    value = x.to(tl.float32)
    if CENTRED:
        mean = tl.sum(value, axis=0) / n
        value = tl.where(inside, value - mean, 0.0)
    y = value * (1.0 / tl.sqrt(tl.sum(value * value, axis=0) / n + eps))
    if HAS_WEIGHT:
        y = y * tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y = y + tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    if MODULATED:
        y = y * tl.load(scale_ptr + base + column, mask=inside, other=0.0).to(tl.float32)
        y = y + tl.load(shift_ptr + base + column, mask=inside, other=0.0).to(tl.float32)
    if GATED:
        y = y * tl.load(gate_ptr + base + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + base + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def make(t, n, eps, centred):
    """A function that norms t["x"] (and what else `t` holds) in rows of n, and its outputs."""
    if n > LARGEST_ROW:
        raise NotImplementedError(f"the kernel holds rows of at most {LARGEST_ROW} elements")
    x = t["x"]
    rows = x.numel() // n
    block = triton.next_power_of_2(n)
    warps = 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4
    y = torch.empty_like(x)
    summed = torch.empty_like(x) if "residual" in t else x

    def other(name):
        return t.get(name, x)

    def call():
        row_norm[(rows,)](x, other("residual"), other("weight"), other("bias"), other("scale"), other("shift"),
                          other("gate"), y, summed, n, eps, CENTRED=centred, HAS_WEIGHT="weight" in t,
                          HAS_BIAS="bias" in t, ADDS="residual" in t, MODULATED="scale" in t, GATED="gate" in t,
                          BLOCK=block, num_warps=warps)
        return y
    return call
