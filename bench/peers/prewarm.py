"""Fills the caches of the peers' compilers (torch's, Triton's, flashinfer's builds) from several processes at once.

Each call is made by whichever process comes to it first, except for peers that search: of those each process takes every
workload and its share of the candidates, so that none is compiled twice. What nvcc builds for a peer, one process more builds:
flashinfer has ninja keep one log for all its libraries, and what one ninja writes there, another that runs beside it loses, so
that everything is built anew the next time.
"""
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILDER = "builder"  # the part that builds
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
    """`script` in `count` processes and one that builds, as it was called, for parts of the work; ended after `limit`
    seconds (0: when done)."""
    begun = time.monotonic()
    command = [sys.executable, os.path.abspath(script), *sys.argv[1:]]
    # As many compile for themselves as there are processes: no pool of workers in each.
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    cut = 0
    with tempfile.TemporaryDirectory() as claims:
        parts = [subprocess.Popen(command + ["--prewarm-part", part, "--prewarm-claims", claims],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                  env=environment) for part in [BUILDER] + [f"{i}/{count}" for i in range(count)]]
        for part in parts:
            try:
                part.wait(max(0.1, begun + limit - time.monotonic()) if limit else None)
            except subprocess.TimeoutExpired:
                os.killpg(part.pid, signal.SIGKILL)
                part.wait()
                cut += 1
    print(f"caches filled by {len(parts)} processes in {time.monotonic() - begun:.0f} s, {cut} cut short", flush=True)


def tasks_of(work, peers, builds):
    """Two lists of (workload, peer): one for each library that a peer has nvcc build, and the other calls.

    `peers[family]` holds the peers' names; `builds[family][name]` is a function from a workload to what names the
    library that its call needs.
    """
    built, first, then = set(), [], []
    for _, w in work:
        for name in peers[w["family"]]:
            build = builds[w["family"]].get(name)
            if build is None:
                then.append((w, name))
            elif (key := (name, w["family"], build(w))) not in built:
                built.add(key)
                first.append((w, name))
    return first, then


def claimed(folder, number):
    """Whether this process is the first that asks for task `number`."""
    try:
        os.close(os.open(os.path.join(folder, str(number)), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def build_together(make_calls):
    """Builds with one ninja what flashinfer would build, library after library, in `make_calls()`."""
    from flashinfer.jit import core
    specs = {}

    def collect(spec):
        specs[spec.name] = spec
        raise RuntimeError("built later, with the others")

    build_and_load = core.JitSpec.build_and_load
    core.JitSpec.build_and_load = collect
    try:
        make_calls()
    finally:
        core.JitSpec.build_and_load = build_and_load
    core.build_jit_specs(list(specs.values()))


def run_part(part, claims, tasks, peers, make_inputs):
    """What one process does: the builder all builds, the others the calls that nobody has begun, each once, on its own;
    failures show later."""
    import torch

    def call(w, name):
        try:
            peers[w["family"]][name](w, make_inputs(w), None)()
            torch.cuda.synchronize()
        except Exception:  # pylint: disable=broad-except
            pass
        torch.cuda.empty_cache()

    builds, calls = tasks
    if part == BUILDER:
        try:
            build_together(lambda: [call(*task) for task in builds])
        except Exception:  # pylint: disable=broad-except
            pass  # what is missing is built below, library after library
        for task in builds:
            call(*task)
        return
    os.nice(10)  # the builder takes longest
    for number, (w, name) in enumerate(calls):
        all_share = (w["family"], name) in SEARCHING and w["bytes"] <= LARGEST_SHARED  # all hold its tensors at once
        if all_share or claimed(claims, number):
            call(w, name)


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
