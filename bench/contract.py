#!/usr/bin/env python3
"""The performance contract as a table, from the JSON of `kiln bench` and peers.py.

    python3 bench/contract.py all.json norm.json --in docs/performance.md

Of several files that hold a path, the first counts. The table is printed, or put between the lines <!-- contract --> and
<!-- end of contract --> of the page. What no file holds says so.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from report import LAUNCH, Row, geometric_mean, read_published, table  # noqa: E402
from results_file import ResultsError, ending, read, read_text, timed, write_whole  # noqa: E402

BEGIN, END = "<!-- contract -->", "<!-- end of contract -->"
ABSENT = ["not measured in these runs", "", "", "open"]


class Runs:
    def __init__(self, documents, published):
        self.documents, self.published = documents, published

    def contender(self, name, contender="kiln"):
        """Microseconds of the first workload whose name begins so."""
        for d in self.documents:
            for w in d["workloads"]:
                if w["name"].startswith(name) and contender in timed(w):
                    return timed(w)[contender]["us"]["median"]
        return None

    def rows(self, family):
        for d in self.documents:
            rows = [Row(d, w, self.published) for w in d["workloads"] if w["family"] == family]
            rows = [r for r in rows if r.kiln]
            if rows:
                return rows
        return []

    def instructions(self, name):
        counts = (d.get("instructions", {}) for d in self.documents)
        return next((f", {found[name]} instructions" for found in counts if name in found), "")


def within(value, bound):
    return f"{value / bound:.2f} of the bound", "" if value <= bound else f"{(value / bound - 1) * 100:.0f} % over"


def hit(runs, path, ns):
    one, many = (runs.contender(f"host path: {path}/threads:{n}") for n in (1, 16))
    if one is None:
        counted = runs.instructions(path)
        return ["not timed in these runs" + counted, "", "", "open"] if counted else ABSENT
    bare = runs.contender("host path: bare_launch/threads:1") if path == "whole_call" else None
    spread = many and many / one
    ratio, miss = within(max(one, many or 0) * 1e3, ns)
    flat = "" if not spread or spread <= 1.1 else f"not flat: {spread:.1f} times at 16 threads"
    return [f"{one * 1e3:.1f} ns" + (f", {many * 1e3:.1f} ns at 16 threads" if many else "") +
            runs.instructions(path), bare and f"launch that does nothing, {bare * 1e3:.1f} ns" or "", ratio,
            "; ".join(filter(None, [miss, flat]))]


def first_call(runs):
    kiln, bare = runs.contender("first call"), runs.contender("first call", "nvrtc")
    if not kiln or not bare:
        return ABSENT
    over = kiln - bare
    misses = [f"{over / bare * 100:.0f} % beyond"] * (over > 0.1 * bare) + [f"{over * 1e-3:.0f} ms beyond"] * (over > 1e4)
    return [f"{kiln * 1e-3:.0f} ms", f"bare NVRTC, {bare * 1e-3:.0f} ms", f"{bare / kiln:.2f}", "; ".join(misses)]


def disk(runs):
    hit_us, read_us = runs.contender("cache: disk_hit_100k"), runs.contender("cache: file_read_100k")
    if not hit_us or not read_us:
        return ABSENT
    return [f"{hit_us - read_us:.0f} us, beyond reading the file", f"reading it, {read_us:.1f} us",
            *within(hit_us - read_us, 50)]


def pack(runs):
    ours, files = (runs.contender(f"cache: artifacts_1000_from_{what}") for what in ("a_pack", "files"))
    if not ours:
        return ABSENT
    return [f"{ours * 1e-3:.1f} ms", f"files of their own, {files * 1e-3:.0f} ms" if files else "",
            *within(ours, 50e3)]


def warming(runs):
    found = [(r.name.removeprefix("warm scaling: "), r.us, r.peers["nvrtc processes"]["us"]["median"])
             for r in runs.rows("warm scaling") if "nvrtc processes" in r.peers]
    if not found:
        return ABSENT
    behind = [f"{name}: {theirs / ours:.2f}" for name, ours, theirs in found if theirs / ours < 0.9]
    return [f"{len(found)} kinds and widths", "independent NVRTC processes",
            f"{min(t / o for _, o, t in found):.2f} to {max(t / o for _, o, t in found):.2f}", "; ".join(behind)]


def host_time(runs):
    rows = runs.rows("host time")
    if not rows:
        return ABSENT
    r = rows[0]
    peers = ", ".join(f"{n} {c['us']['median']:.1f} us" for n, c in r.peers.items())
    best = f"{r.best_ratio():.2f} {r.best}" if r.best else ""
    if LAUNCH not in r.all:
        return [f"{r.us:.2f} us; no {LAUNCH!r} beside it", peers, best, "open"]
    launch = r.all[LAUNCH]["us"]["median"]
    beyond, bound = r.us - launch, 0.15
    misses = [f"{beyond / bound:.0f} times the bound"] * (beyond > bound) + [f"slower than {r.best}"] * r.behind()
    return [f"{r.us:.2f} us, {beyond:.2f} us beyond an empty kernel's launch of {launch:.2f} us", peers,
            best, "; ".join(misses)]


def kernels(runs, family):
    rows = runs.rows(family)
    if not rows:
        return ABSENT
    against = [r.peers["torch"]["us"]["median"] / r.us for r in rows if "torch" in r.peers]
    judged, goals = [r for r in rows if r.best], [r for r in rows if r.published]
    behind, over = sum(r.behind() for r in judged), sum(r.goal_missed() for r in goals)
    misses = ([f"behind the fastest peer in {behind} of {len(judged)}"] if behind else []) + \
             ([f"over the goal in {over} of {len(goals)}"] if over else [])
    floors = [r.floor / r.us for r in rows if r.floor]
    floor = f"floor/Kiln {geometric_mean(floors):.2f}" if floors else "no floor"
    return [f"{len(rows)} workloads, {floor}", "PyTorch; the fastest peer of each",
            f"PyTorch/Kiln {geometric_mean(against):.2f} ({min(against):.2f} to {max(against):.2f})" if against else "",
            ", ".join(misses)]


def contract(runs):
    rows = [("hit: finding the entry", "50 ns, flat to 16 threads", hit(runs, "find_entry", 50)),
            ("hit: all that Kiln does on the host", "150 ns, flat to 16 threads", hit(runs, "whole_call", 150)),
            ("hit: the same on a device, launch included", "150 ns beyond the driver's launch", host_time(runs)),
            ("first call, beyond bare NVRTC", "10 % and 10 ms", first_call(runs)),
            ("new process, artifact on disk", "50 us beyond the load", disk(runs)),
            ("1,000 artifacts from a pack", "50 ms", pack(runs)),
            ("16 processes, one cold key", "1 compilation", ["a test, no timing", "", "", ""]),
            ("warming on P cores", "0.9 of independent NVRTC processes", warming(runs))]
    rows += [(f"kernels: {family}", "ahead of the framework, near the copy or product rate", kernels(runs, family))
             for family in ("norm", "gemm", "attention", "gla")]
    lines = table(["path", "bound", "measured", "peer", "ratio", "miss"], [[p, b, *cells] for p, b, cells in rows])
    lines[1] = "|---|---|---|---|---|---|"
    return lines + [""] + [
        f"{i + 1}. {d['date'][:10]}, {d['machine'].get('device') or 'no device'}, {host_of(d['machine'])}"
        f", commit {d['commit'] or 'not given'}: {families_in(d)}" for i, d in enumerate(runs.documents)]


def host_of(machine):
    return machine.get("host") or f"{machine.get('host_threads', '?')} host threads"


def families_in(document):
    families = list(dict.fromkeys(w["family"] for w in document["workloads"]))
    return f"{', '.join(families)} ({len(document['workloads'])})"


def write(results, name):
    published = read_published(os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.jsonl"))
    text = "\n".join(contract(Runs([read(r) for r in results], published)))
    if not name:
        print(text)
        return
    page = read_text(name)
    begins, ends = page.count(BEGIN), page.count(END)
    if (begins, ends) != (1, 1) or page.index(BEGIN) > page.index(END):
        order = ", the second first" if (begins, ends) == (1, 1) else ""
        raise ResultsError(f"{name}: must hold {BEGIN} and {END} once each, in this order: got {begins} and {ends}{order}")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    write_whole(name, f"{before}{BEGIN}\n{text}\n\n{END}{after}")


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", nargs="+")
    p.add_argument("--in", dest="page", default="", help="the page whose table is replaced")
    args = p.parse_args(argv)
    return ending(lambda: write(args.results, args.page))


if __name__ == "__main__":
    sys.exit(main())
