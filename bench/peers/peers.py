#!/usr/bin/env python3
"""Kiln beside other libraries: the families' perf workloads, timed in one process by one method.

    build/release/bin/libkiln_bench.so must be built (ninja -C build/release kiln_bench); then
    python3 bench/peers/peers.py --library build/release/bin/libkiln_bench.so --family norm --json norm.json

Needs PyTorch; Triton, flashinfer, Liger, flash-linear-attention, CuPy and cuBLASLt are measured where they can be
had and named in the results where they cannot. docs/benchmarks.md says how it is timed.
"""
import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libkiln_bench.so")  # a build links us beside it
sys.path.insert(0, HERE)
import prewarm  # noqa: E402
from suite import Call, Suite, SuiteError  # noqa: E402

FAMILIES = ("norm", "gemm", "attention", "gla")  # each with a module FAMILY_peers
PREWARM_SHARE = 0.5  # of the deadline, at most
LARGE = 1 << 30  # bytes; what moves more comes last
COMPARED = 1 << 22  # elements of each end of a result that are compared


def expression(text):
    """An argparse type."""
    try:
        re.compile(text)
        return text
    except re.error as e:
        raise argparse.ArgumentTypeError(f"must be a regular expression: got {text!r} ({e})") from e


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", default=BESIDE if os.path.exists(BESIDE) else
                   os.path.join(HERE, "../../build/release/bin/libkiln_bench.so"))
    p.add_argument("--family", default="all", choices=["all", *FAMILIES, "host"],
                   help="one of kernels; host: what a call costs the host; all without it")
    p.add_argument("--filter", default="", type=expression, help="only workloads whose name this expression finds")
    p.add_argument("--peers", default="", help="only these, parted by commas")
    p.add_argument("--json", default="", help="write the results here")
    p.add_argument("--cupti", default="", help="the profiler's library; looked for without it")
    p.add_argument("--commit", default="", help="what was built, for the results")
    p.add_argument("--measure-ms", type=float, default=100, help="of each contender")
    p.add_argument("--warm-l2", action="store_true")
    p.add_argument("--no-graph", action="store_true")
    p.add_argument("--deadline", type=float, default=0, help="seconds after which no workload is begun")
    p.add_argument("--prewarm", type=int, default=0, help="processes that fill the compilers' caches beforehand")
    p.add_argument("--prewarm-part", default="", help=argparse.SUPPRESS)
    p.add_argument("--prewarm-claims", default="", help=argparse.SUPPRESS)
    p.add_argument("--peer-limit", type=float, default=0, help="seconds for a peer to be ready; the next time, a tenth")
    p.add_argument("--list", action="store_true", help="print the workloads and end; needs no device")
    return p.parse_args()


def chosen(workloads, wanted):
    found = [(i, w) for i, w in enumerate(workloads) if re.search(wanted, w["name"])]
    if not found:
        print(f"peers.py: --filter: must match a workload: got {wanted!r}; --list shows them", file=sys.stderr)
        sys.exit(2)
    return in_turn(found)


def in_turn(found):
    """Small workloads before large ones, and the families' in turn by their numbers: a deadline cuts all families alike."""
    turns = []
    for large in (False, True):
        for family in FAMILIES:
            own = [iw for iw in found if iw[1]["family"] == family and (iw[1]["bytes"] > LARGE) == large]
            turns += [(large, (at + 0.5) / len(own), iw) for at, iw in enumerate(own)]
    return [iw for _, _, iw in sorted(turns, key=lambda turn: turn[:2])]


def version_of(module):
    if hasattr(module, "__version__"):
        return module.__version__
    try:
        return importlib.metadata.version(module.__name__)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def import_peers(names, families):
    """By family the peers that can be had, and for each its version or why it cannot."""
    peers, notes = {}, {}
    for family in families:
        functions = importlib.import_module(f"{family}_peers")
        peers[family] = {}
        for name in functions.PEERS:
            if names and name not in names.split(","):
                continue
            try:
                module = importlib.import_module(functions.MODULES[name])
                top = sys.modules[module.__name__.split(".")[0]]
                notes[name] = version_of(top)
                peers[family][name] = functions.PEERS[name]
            except Exception as e:  # pylint: disable=broad-except
                notes[name] = f"unavailable: {type(e).__name__}: {e}".split("\n")[0]
    return peers, notes


def make_input(family, spec):
    import torch
    name, dtype = spec["name"], getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(spec["dtype"], spec["dtype"]))
    if name in ("k_scale", "v_scale"):  # alike for all heads: some peers take one number
        return torch.full(spec["shape"], 0.5 if name == "k_scale" else 1.0, device="cuda", dtype=dtype)
    values = torch.randn(spec["shape"], device="cuda", dtype=torch.float16 if dtype.itemsize == 1 else dtype)
    if family == "gla" and name == "g":  # the logarithm of a gate
        return torch.nn.functional.logsigmoid(values)
    if family == "norm":
        return values.abs_().add_(0.5) if name.endswith("var") else values.add_(0.5)
    return values.to(dtype)


def make_inputs(w):
    """Random tensors by name; means of norms are not zero and variances are not negative."""
    return {spec["name"]: make_input(w["family"], spec) for spec in w["inputs"] if spec is not None}


def make_outputs(w):
    import torch
    return [torch.empty(s["shape"], device="cuda", dtype=getattr(torch, s["dtype"])) if s else None
            for s in w["outputs"]]


def difference(got, want):
    """The largest difference of two results, in units of what a value of 1 is apart; of both ends of large ones."""
    import torch
    if not isinstance(want, torch.Tensor):
        want = want[0]
    got, want = got.flatten(), want.detach().flatten()
    worst = 0.0
    for part in (slice(0, COMPARED), slice(max(0, len(got) - COMPARED), len(got))):
        a, b = got[part].float(), want[part].float()
        worst = max(worst, ((a - b).abs() / (1 + b.abs())).nan_to_num(nan=float("inf")).max().item())
    return worst


def called(contender):
    """What one call of it returns, and what is worth noting of it."""
    if isinstance(contender, Call):
        contender.run()
        return contender.d, dict(contender.note)
    return contender(), {}


class Runner:
    def __init__(self, suite, peers, stream, options, limit):
        self.suite, self.peers, self.stream, self.options, self.limit = suite, peers, stream, options, limit
        self.slow, self.versions = set(), {}

    def ready(self, name, make, w, inputs):
        """The contender, what its first call returned and what is worth noting."""
        key = (w["family"], name)
        begun = time.monotonic()
        try:
            with prewarm.TimeLimit(self.limit / (10 if key in self.slow else 1)):
                function = make(w, inputs, self.suite)
                y, note = called(function)
                return function, y, {**note, "ready_s": round(time.monotonic() - begun, 3)}
        except TimeoutError:
            self.slow.add(key)
            raise

    def run(self, index, w):
        import torch
        begun = time.monotonic()
        inputs, outputs = make_inputs(w), make_outputs(w)
        call = self.suite.prepare(index)
        contenders, notes = [("kiln", call)], {}
        try:
            call.bind(self.stream.cuda_stream,
                      [inputs[s["name"]].data_ptr() if s else None for s in w["inputs"]],
                      [o.data_ptr() if o is not None else None for o in outputs])
            torch.cuda.synchronize()
            call.run()
            torch.cuda.synchronize()
            for name, make in self.peers[w["family"]].items():
                try:
                    function, y, notes[name] = self.ready(name, make, w, inputs)
                    if "version" in notes[name]:
                        self.versions[name] = notes[name].pop("version")
                    torch.cuda.synchronize()
                    if y is not None:
                        notes[name]["difference_from_kiln"] = difference(outputs[0], y)
                    del y
                    contenders.append((name, function))
                except Exception as e:  # pylint: disable=broad-except
                    notes[name] = {"unavailable": f"{type(e).__name__}: {e}".split("\n")[0][:300]}
            timings = self.suite.measure(self.stream.cuda_stream, w["bytes"], contenders, self.options)
            for timing in timings:
                timing.update(notes.pop(timing["name"], {}))
                if timing["name"] == "kiln":
                    timing["served_by"] = call.served_by()
            timings += [{"name": name, **note} for name, note in notes.items()]
            return {**w, "state": self.suite.device_state(), "contenders": timings,
                    "seconds": round(time.monotonic() - begun, 3)}
        finally:
            torch.cuda.synchronize()
            for _, ours in contenders:
                if isinstance(ours, Call):
                    ours.release()


def line_of(result):
    parts = []
    for c in result["contenders"]:
        if "us" in c:
            flag = "!events" if c["clock"] == "events" else ""
            far = c.get("difference_from_kiln", 0) > 0.05
            parts.append(f"{c['name']} {c['us']['median']:.2f}{flag}{' DIFFERS' if far else ''}")
        else:
            parts.append(f"{c['name']} -")
    return f"{result['name']}: " + ", ".join(parts)


def write(path, document):
    if not path:
        return
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def commit_of(args):
    if args.commit:
        return args.commit
    try:
        return subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def families_of(args):
    return FAMILIES if args.family == "all" else () if args.family == "host" else (args.family,)


def listed_family(args):
    return {"all": "", "host": "norm"}.get(args.family, args.family)


def host_rows(args, suite, stream, notes):
    if args.family not in ("all", "host") or args.filter:
        return []
    import host_peers
    import torch
    workloads = list(enumerate(suite.workloads(listed_family(args))))
    index, w = min(((i, w) for i, w in workloads if host_peers.serves(w)), key=lambda iw: iw[1]["bytes"])
    with torch.cuda.stream(stream), torch.no_grad():
        rows = host_peers.rows(suite, index, w, make_inputs(w), make_outputs(w), stream, notes, difference)
    for row in rows:
        print(line_of(row), flush=True)
    return rows


def measure_all(args, work, begun):
    import torch
    options = {"cold_l2": not args.warm_l2, "graph": not args.no_graph, "measure_ms": args.measure_ms}
    torch.cuda.init()
    torch.manual_seed(1)
    try:
        suite = Suite(args.library, cupti=args.cupti)
    except SuiteError as e:
        print(f"peers.py: {e}", file=sys.stderr)
        return 3
    suite.workloads(listed_family(args))
    peers, notes = import_peers(args.peers, families_of(args))
    stream = torch.cuda.Stream()
    rows = host_rows(args, suite, stream, notes)  # before any profiler
    document = {"format": "kiln-bench", "version": 1,
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "command": " ".join(["python3"] + sys.argv), "commit": commit_of(args), **suite.machine(options),
                "peers": notes, "floor": suite.floor(options), "workloads": rows, "not_run": []}
    print(document["machine"]["device"], document["machine"]["cupti"], notes, flush=True)
    print(f"copy rate {document['floor']['bytes_per_second'] * 1e-12:.3f} TB/s, an empty kernel "
          f"{document['floor']['empty_kernel_us']['median']:.2f} us", flush=True)
    runner = Runner(suite, peers, stream, options, args.peer_limit)
    if args.deadline:
        document["method"]["peers' search"] = "Triton's candidates for 20 ms each, not 100"
    for index, w in work:
        if args.deadline and time.monotonic() - begun > args.deadline:
            document["not_run"].append({"name": w["name"], "reason": "deadline"})
            continue
        try:
            with torch.cuda.stream(stream), torch.no_grad():
                result = runner.run(index, w)
            document["workloads"].append(result)
            notes.update(runner.versions)
            print(line_of(result), flush=True)
        except (SuiteError, RuntimeError) as e:
            document["not_run"].append({"name": w["name"], "reason": str(e)[:500]})
            print(f"{w['name']}: NOT RUN: {e}", flush=True)
        torch.cuda.empty_cache()
        write(args.json, document)
    print(f"{len(document['workloads'])} workloads timed, {len(document['not_run'])} not run, "
          f"{time.monotonic() - begun:.0f} s", flush=True)
    write(args.json, document)
    return 0 if document["workloads"] else 3


def main():
    begun = time.monotonic()
    args = arguments()
    if not os.path.exists(args.library):
        print(f"peers.py: --library: must be there: got {args.library}", file=sys.stderr)
        return 3
    lister = Suite(args.library, list_only=True)
    work = [] if args.family == "host" else chosen(lister.workloads(listed_family(args)), args.filter)
    if args.list:
        for _, w in work:
            print(json.dumps(w))
        return 0
    if args.deadline:
        prewarm.shorten_search()
    try:
        import torch
    except ImportError:
        print("peers.py: PyTorch must be there: it is not; gpu_bench times Kiln alone", file=sys.stderr)
        return 3
    if args.prewarm_part:
        if args.prewarm_part != prewarm.BUILDER:
            prewarm.share_candidates(*(int(v) for v in args.prewarm_part.split("/")))
        peers, _ = import_peers(args.peers, families_of(args))
        builds = {f: getattr(sys.modules[f"{f}_peers"], "BUILDS", {}) for f in peers}
        with torch.no_grad():
            prewarm.run_part(args.prewarm_part, args.prewarm_claims, prewarm.tasks_of(work, peers, builds), peers,
                             make_inputs)
        return 0
    if not torch.cuda.is_available():
        print("peers.py: a benchmark of device work needs a device: PyTorch sees none", file=sys.stderr)
        return 3
    if args.prewarm and work:
        prewarm.run(__file__, args.prewarm, args.deadline * PREWARM_SHARE)
    return measure_all(args, work, begun)


if __name__ == "__main__":
    sys.exit(main())
