"""A plain Triton matrix product, d = a . b^T: tiles in groups that share columns, accumulated in float32."""
import torch
import triton
import triton.language as tl

# Tiles that serve many rows, then few.
CONFIGS = [triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
           for bm, bn, bk, warps, stages in ((128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (64, 128, 64, 4, 4),
                                             (64, 64, 128, 4, 4), (16, 64, 128, 4, 5), (16, 32, 256, 4, 4))]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"])
@triton.jit
def product(a_ptr, b_ptr, d_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            GROUP: tl.constexpr = 8):
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = tl.program_id(0) // (GROUP * blocks_n)
    rows = min(blocks_m - group * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * blocks_n)
    row = (group * GROUP + within % rows) * BM + tl.arange(0, BM)
    column = within // rows * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + (row % m).to(tl.int64)[:, None] * k + depth[None, :]
    b_at = b_ptr + (column % n).to(tl.int64)[None, :] * k + depth[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        inside = depth < k - first
        a = tl.load(a_at + first, mask=inside[None, :], other=0.0)
        b = tl.load(b_at + first, mask=inside[:, None], other=0.0)
        total = tl.dot(a, b, total)
    d_at = d_ptr + row.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(d_at, total.to(d_ptr.dtype.element_ty), mask=(row[:, None] < m) & (column[None, :] < n))


def make(a, b):
    (m, k), n = a.shape, b.shape[0]
    d = torch.empty((m, n), dtype=a.dtype, device=a.device)

    def call():
        product[lambda c: (triton.cdiv(m, c["BM"]) * triton.cdiv(n, c["BN"]),)](a, b, d, m, n, k)
        return d
    return call
