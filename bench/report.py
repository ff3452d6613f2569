#!/usr/bin/env python3
"""A results page and its plots from the JSON of gpu_bench, peers.py or `kiln bench`.

    python3 bench/report.py norm.json --out docs/results/2026-11-29-h200-norm.md

writes the page and, where Matplotlib can be imported, two plots a family beside it: ...-roofline.svg, ...-ratios.svg.
docs/benchmarks.md explains the columns.
"""
import argparse
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from results_file import (ABOVE_0, NAME, ResultsError, beyond_noise, check_fields, ending, need, parse, read,  # noqa: E402
                          read_text, timed, write_whole)

LAUNCH = "driver launch alone"  # of host times: a floor, no peer
TOLERATED_DIFFERENCE = 0.05  # of a peer's result from Kiln's, relative to 1 + |value|
LONGEST_REASON = 200  # characters


def read_published(path):
    """Rows by workload."""
    rows = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            row, where = parse(line, f"{path}:{number}"), f"{path}:{number}"
            need(isinstance(row, dict), where, "must hold an object", row)
            check_fields(row, where, {"workload": NAME, "us": ABOVE_0, "by": NAME, "goal_us": ABOVE_0}, True)
            rows[row["workload"]] = row
    return rows


def without_folders(command):
    """The command with the folders of one machine left out."""
    return re.sub(r"(?<![^\s=])/\S*/", "", command)


def product_rate(document):
    """Operations a second of the run's fastest matrix product, whoever's it is; None without one."""
    rates = [w["flops"] / c["us"]["median"] * 1e6 for w in document["workloads"] if w["family"] == "gemm"
             for c in timed(w).values() if c["name"] != "copy"]
    return max(rates, default=None)


def floor_us(document, workload):
    """The least a kernel can take: its bytes at the rate of the fastest copy, a product's operations at the rate of the
    fastest product, or an empty kernel's time."""
    floor = document.get("floor")
    if LAUNCH in timed(workload):
        return timed(workload)[LAUNCH]["us"]["median"]
    if not floor or not workload.get("bytes"):
        return None
    rate = product_rate(document) if workload["family"] == "gemm" else None
    return max(workload["bytes"] / floor["bytes_per_second"] * 1e6, floor["empty_kernel_us"]["median"],
               workload["flops"] / rate * 1e6 if rate else 0)


def copy_us(contenders, workload):
    """A copy's time for the workload's bytes; one that moved fewer is scaled up."""
    copy = contenders.get("copy")
    if not copy or not workload.get("bytes"):
        return None
    return copy["us"]["median"] * max(1, workload["bytes"] / copy.get("bytes", workload["bytes"]))


class Row:
    """One workload of a family, judged."""

    def __init__(self, document, workload, published):
        self.name, self.workload = workload["name"], workload
        self.all = timed(workload)
        self.kiln = self.all.get("kiln")
        self.peers = {n: c for n, c in self.all.items()
                      if n not in ("copy", LAUNCH) and n.split()[0] != "kiln"}
        self.copy = copy_us(self.all, workload)
        self.floor = floor_us(document, workload)
        self.published = published.get(self.name)
        right = {n: c for n, c in self.peers.items() if c.get("difference_from_kiln", 0) <= TOLERATED_DIFFERENCE}
        self.best = min(right, key=lambda n: right[n]["us"]["median"], default=None)

    @property
    def us(self):
        return self.kiln["us"]["median"]

    def best_ratio(self):
        return self.peers[self.best]["us"]["median"] / self.us if self.best else None

    def behind(self):
        """Slower than the best peer, by more than noise."""
        return bool(self.best) and self.best_ratio() < 1 and beyond_noise(self.kiln, self.peers[self.best])

    def goal_missed(self):
        return bool(self.published) and self.us > self.published["goal_us"]


def number(value):
    if value is None:
        return "–"
    digits = 4 if value < 0.1 else 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:,.{digits}f}"


def ratio(value):
    return "–" if value is None else f"{value:.2f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return lines + ["| " + " | ".join(cells) + " |" for cells in rows]


def cell(contender, flag=""):
    if contender is None:
        return "–"
    marks = "!" if contender.get("clock") == "events" else ""
    marks += "≠" if contender.get("difference_from_kiln", 0) > TOLERATED_DIFFERENCE else ""
    text = number(contender["us"]["median"]) + marks
    return f"**{text}**" if flag else text


def family_table(rows, peers):
    """A column that no workload has anything in is left out."""
    def best(r):
        return f"{ratio(r.best_ratio())} {r.best}" + (" **miss**" if r.behind() else "") if r.best else "–"

    def published(r):
        return f"{r.published['us']:g} {r.published['by']} ({r.published['goal_us']:g})" if r.published else "–"

    def goal(r):
        return ratio(r.published["goal_us"] / r.us) + (" **miss**" if r.goal_missed() else "") if r.published else "–"
    columns = [("workload", lambda r: r.name.removeprefix(r.workload["family"] + ": ")), ("Kiln", lambda r: cell(r.kiln, "kiln")),
               ("p10–p90", lambda r: f"{number(r.kiln['us']['p10'])}–{number(r.kiln['us']['p90'])}"),
               *[(p, lambda r, p=p: cell(r.peers.get(p))) for p in peers],
               ("floor", lambda r: number(r.floor)), ("copy", lambda r: number(r.copy)), ("published (goal)", published),
               ("floor / Kiln", lambda r: ratio(r.floor and r.floor / r.us)), ("best peer / Kiln", best),
               ("goal / Kiln", goal)]
    filled = [(name, cells) for name, cells in ((name, [of(r) for r in rows]) for name, of in columns)
              if any(c != "–" for c in cells)]
    return table([name for name, _ in filled], list(zip(*[cells for _, cells in filled])))


def geometric_mean(values):
    product = 1.0
    for v in values:
        product *= v ** (1 / len(values))
    return product


def summary(rows, peers):
    lines = []
    for p in peers:
        both = [r.peers[p]["us"]["median"] / r.us for r in rows if p in r.peers]
        if both:
            lines.append(f"- {p} / Kiln: {geometric_mean(both):.2f} (geometric mean of {len(both)}; "
                         f"{min(both):.2f} to {max(both):.2f})")
    against = [r for r in rows if r.best]
    if against:
        behind = [r for r in against if r.behind()]
        ahead = [r for r in against if r.best_ratio() > 1 and beyond_noise(r.kiln, r.peers[r.best])]
        lines.append(f"- Against the fastest peer of each workload: ahead in {len(ahead)}, behind in {len(behind)}, "
                     f"within noise in {len(against) - len(ahead) - len(behind)}, of {len(against)}")
    with_goal = [r for r in rows if r.published]
    if with_goal:
        missed = sum(r.goal_missed() for r in with_goal)
        lines.append(f"- Goals set from published figures: met in {len(with_goal) - missed} of {len(with_goal)}")
    return lines


def misses(rows):
    behind = sorted((r for r in rows if r.behind()), key=Row.best_ratio)
    missed = sorted((r for r in rows if r.goal_missed()), key=lambda r: r.published["goal_us"] / r.us)
    def by(times, word):
        return f"{(times - 1) * 100:.0f} % {word}" if times < 3 else f"{times:.1f} times as long"
    lines = [f"- {r.name}: {number(r.us)} us, {r.best} {number(r.peers[r.best]['us']['median'])} us "
             f"({by(1 / r.best_ratio(), 'slower')})" for r in behind]
    lines = ["Slower than the fastest peer, by more than noise:", "", *(lines or ["- none"])]
    goals = [f"- {r.name}: {number(r.us)} us, goal {r.published['goal_us']:g} us "
             f"({by(r.us / r.published['goal_us'], 'over')}), published {r.published['us']:g} us by "
             f"{r.published['by']}" for r in missed]
    return lines + (["", "Over the goal:", "", *(goals or ["- none"])] if any(r.published for r in rows) else [])


def left_out(workloads):
    """Every contender that has no figure, and why: nothing is dropped in silence."""
    reasons = {}
    for w in workloads:
        for c in w["contenders"]:
            if "us" not in c:
                why = str(c.get("error") or c.get("unavailable"))
                reasons.setdefault((c["name"], re.sub(r"\b\d+\b", "N", why)), []).append((w["name"], why))
    return [f"- {name}, {len(hits)} workload{'s' * (len(hits) > 1)}: "
            f"{hits[0][1]}" + (f" ({hits[0][0]})" if len(hits) == 1 else "")
            for (name, _), hits in sorted(reasons.items())]


def not_there(document):
    """Peers that could not be had at all, and what was not run."""
    lines = [f"- {name}: {note}" for name, note in (document.get("peers") or {}).items() if "unavailable" in note]
    reasons = {}
    for n in document.get("not_run") or []:
        why = n["reason"].strip().split("\n")[-1].removeprefix(n["name"] + ": ")
        reasons.setdefault(why, []).append(n["name"])
    return lines + [f"- not run: {', '.join(names)}: {shortened(why)}" for why, names in reasons.items()]


def shortened(reason):
    """Cut after a word, which an ellipsis shows."""
    if len(reason) <= LONGEST_REASON:
        return reason
    return reason[:LONGEST_REASON + 1].rsplit(None, 1)[0][:LONGEST_REASON] + " …"


def percentiles(rows):
    """Of latencies: those that were written beside the median."""
    rows = [r for r in rows if "percentiles_us" in r.kiln]
    if not rows:
        return []
    shares = [p for p, _ in rows[0].kiln["percentiles_us"]]
    extra = list(rows[0].kiln.get("beside", {}))

    def cells(r):
        us, beside = dict(r.kiln["percentiles_us"]), r.kiln.get("beside", {})
        return [*[number(us[p] * 1e-3) if p in us else "–" for p in shares],
                *[f"{beside[e]:.3g}" if e in beside else "–" for e in extra]]
    body = [[r.name.removeprefix("serving: "), *cells(r)] for r in rows]
    return ["", "Milliseconds by percentile:", "",
            *table(["state", *["max" if p == 1 else f"p{p * 100:g}" for p in shares], *extra], body)]


def heading(document, page_commands):
    m, method = document["machine"], document.get("method") or {}
    version = lambda v: f"{v // 1000}.{v % 1000 // 10}" if isinstance(v, int) else str(v)
    facts = [("date", document["date"]), ("device", m.get("device", "none")), ("driver", m.get("driver", "none")),
             ("toolkit", version(m.get("toolkit", "not asked"))), ("commit", document["commit"] or "not given"),
             ("kernel timer", m.get("cupti")), ("host", m.get("host") or f"{m.get('host_threads', '?')} threads")]
    facts += [(k, str(method[k])) for k in ("clock", "l2", "order", "graph") if k in method]
    facts += [("peers", ", ".join(f"{k} {v}" for k, v in (document.get("peers") or {}).items()
                                  if "unavailable" not in v))]
    rate = product_rate(document)
    facts += [("fastest product", rate and f"{rate * 1e-12:.0f} TFLOP/s")]
    took = sum((document.get("seconds") or {}).values())
    facts += [("took", took and f"{took:.0f} s")]
    states = [w["state"] for w in document["workloads"] if w.get("state")]
    if states:
        span = lambda f: "–".join(sorted({f"{v(s[f] for s in states):.0f}" for v in (min, max)}, key=float))
        slowed = sum(bool(s["throttle_reasons"]) for s in states)
        facts.append(("during the run", f"{span('sm_mhz')} MHz, {span('watts')} W, {span('celsius')} C, clocks held back "
                                        f"in {slowed} of {len(states)} workloads"))
    lines = [f"- {k}: {v}" for k, v in facts if v]
    return lines + ["", "Commands:", "", *["    " + without_folders(c) for c in page_commands]]


NOTES = """Times are microseconds, medians. Floor: the bytes that must move, at the rate of this device's fastest copy, or an
empty kernel's time if that is longer, of matrix products also their operations at the rate of this run's fastest product,
and of a host time the driver's launch alone; small workloads can lie below the copy, whose start costs more than a kernel's, and
no kernel that must read its input twice reaches the floor. Copy: a device copy that moves as many bytes, timed in the
same rounds. Ratios above 1 mean that Kiln is faster. "miss" is more than noise against a peer (docs/benchmarks.md), and
any excess over a goal. `!` timed by events, `≠` the peer's result differs from Kiln's. Published figures were measured by
others on their machines, and are goals, not peers of this run. A kernel whose result stays in the L2, or that reads more
than it writes, can go a little below the floor."""


def family_section(family, all_rows, plots):
    rows = [r for r in all_rows if r.kiln]
    peers = list(dict.fromkeys(n for r in rows for n in r.peers))
    clocks = sorted({r.kiln["clock"] for r in rows})
    lines = ["", f"## {family}", "", *([f"- timed by: {', '.join(clocks)}"] if clocks not in ([], ["cupti"]) else []),
             *summary(rows, peers)]
    for name, alt in plots:
        lines += ["", f"![{alt}]({name})"]
    for op in dict.fromkeys(r.workload.get("op", "") for r in rows):
        lines += ["", *([f"### {op}", ""] if op else []),
                  *family_table([r for r in rows if r.workload.get("op", "") == op], peers)]
    lines += percentiles(rows)
    if any(r.best or r.published for r in rows):
        lines += ["", f"### Misses of {family}", "", *misses(rows)]
    without = left_out([r.workload for r in all_rows])
    if without:
        lines += ["", f"### Without a figure in {family}", "", *without]
    return lines


def counts_section(document):
    counts = document.get("instructions") or {}
    return ["", "## Instructions of a call that hits", "", "By valgrind; they do not depend on the machine.", "",
            *table(["path", "instructions"], [[n, f"{v:,}"] for n, v in counts.items()])] if counts else []


def page(document, published, title, plots, commands):
    lines = [f"# {title}", "", "Generated by `bench/report.py`; do not edit.", "", *heading(document, commands)]
    lines += ["", NOTES] if document["workloads"] else []
    for family in dict.fromkeys(w["family"] for w in document["workloads"]):
        rows = [Row(document, w, published) for w in document["workloads"] if w["family"] == family]
        lines += family_section(family, rows, plots.get(family, []))
    lines += counts_section(document)
    missing = not_there(document)
    if missing:
        lines += ["", "## Not there", "", *missing]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def draw(document, published, stem):
    """[(file, alt)] by family; nothing, with a warning, where Matplotlib is missing."""
    try:
        import report_plots
    except ImportError as e:
        print(f"report.py: no plots: {e}; they need Matplotlib (package python3-matplotlib)", file=sys.stderr)
        return {}
    plots = {}
    for family in dict.fromkeys(w["family"] for w in document["workloads"]):
        rows = [Row(document, w, published) for w in document["workloads"] if w["family"] == family]
        slug = family.replace(" ", "-")
        name = stem if stem.endswith("-" + slug) else f"{stem}-{slug}"
        drawn = report_plots.draw(document, family, [r for r in rows if r.kiln], name, product_rate(document))
        plots[family] = [(os.path.basename(p), alt) for p, alt in drawn]
    return plots


def title_of(document):
    families = list(dict.fromkeys(w["family"] for w in document["workloads"])) or ["instructions"]
    what = "kiln bench" if document["command"].startswith("kiln bench") else ", ".join(families)
    return f"{what}, {document['machine'].get('device', 'host')}"


def write(args):
    document, published = read(args.results), read_published(args.published)
    if not document.get("instructions") and not any("kiln" in timed(w) for w in document["workloads"]):
        raise ResultsError(f"{args.results}: must hold a workload that Kiln was timed on, or instructions: got neither")
    commands = [document["command"], f"python3 bench/report.py {os.path.basename(args.results)} --out "
                                     f"{os.path.basename(args.out)}"]
    folder = os.path.dirname(os.path.abspath(args.out))
    need(os.path.isdir(folder), "--out", "must be in a folder that is there", args.out)
    with tempfile.TemporaryDirectory(dir=folder) as drawn:  # all or nothing
        stem = os.path.join(drawn, os.path.splitext(os.path.basename(args.out))[0])
        plots = {} if args.no_plots else draw(document, published, stem)
        text = page(document, published, args.title or title_of(document), plots, commands)
        write_whole(args.out, text)
        for name in os.listdir(drawn):
            os.replace(os.path.join(drawn, name), os.path.join(folder, name))


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", help="JSON of one run")
    p.add_argument("--out", required=True, help="the page, ending in .md")
    p.add_argument("--title", default="", help="without it: families and device")
    p.add_argument("--published", default=os.path.join(HERE, "published.jsonl"), help="others' figures and goals")
    p.add_argument("--no-plots", action="store_true", help="the page alone")
    args = p.parse_args(argv)
    if not args.out.endswith(".md"):
        p.error(f"--out: must end in .md: got {args.out!r}")
    return ending(lambda: write(args))


if __name__ == "__main__":
    sys.exit(main())
