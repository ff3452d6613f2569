"""Fills the caches of the peers' compilers (torch's, Triton's, flashinfer's builds) from several processes at once.

Workloads are shared out, except for peers that search: of those each process takes every workload and its share of the
candidates, so that none is compiled twice.
"""
import functools
import os
import signal
import subprocess
import sys
import time

SEARCHING = (("gemm", "triton"), ("gla", "fla"))
LARGEST_SHARED = 1 << 30  # bytes


def shorten_search():
    """Triton's search times each candidate for 20 ms, not 100."""
    try:
        import triton.testing
        triton.testing.do_bench = functools.partial(triton.testing.do_bench, warmup=5, rep=20)
    except ImportError:
        pass


def share_candidates(index, count):
    """Of what Triton would try, this process tries its part."""
    try:
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return
    make = Autotuner.__init__

    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self.configs = self.configs[index::count] or self.configs[:1]
    Autotuner.__init__ = made


def run(script, count, limit):
    """`script` once for each share, as it was called; ended after `limit` seconds (0: when they end)."""
    begun = time.monotonic()
    command = [sys.executable, os.path.abspath(script), *sys.argv[1:]]
    parts = [subprocess.Popen(command + ["--prewarm-part", f"{i}/{count}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) for i in range(count)]
    cut = 0
    for part in parts:
        try:
            part.wait(max(0.1, begun + limit - time.monotonic()) if limit else None)
        except subprocess.TimeoutExpired:
            os.killpg(part.pid, signal.SIGKILL)
            part.wait()
            cut += 1
    print(f"caches filled by {count} processes in {time.monotonic() - begun:.0f} s, {cut} cut short", flush=True)


def run_part(part, work, peers, make_inputs):
    """One process's share: each call once, on its own; failures show later."""
    import torch
    index, count = (int(v) for v in part.split("/"))
    for number, (_, w) in enumerate(work):
        family = w["family"]
        shared = w["bytes"] <= LARGEST_SHARED  # all processes hold it at once
        wanted = [make for name, make in peers[family].items()
                  if number % count == index or shared and (family, name) in SEARCHING]
        if not wanted:
            continue
        tensors = make_inputs(w)
        for make in wanted:
            try:
                make(w, tensors, None)()
                torch.cuda.synchronize()
            except Exception:  # pylint: disable=broad-except
                pass
        del tensors
        torch.cuda.empty_cache()


class TimeLimit:
    """Raises TimeoutError inside the block when it has taken `seconds`, between steps of Python; 0: no limit."""

    def __init__(self, seconds):
        self.seconds = seconds

    def _raise(self, *_):
        raise TimeoutError(f"was not ready within {self.seconds:g} s")

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self._raise)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
