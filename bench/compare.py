#!/usr/bin/env python3
"""What moved between two runs, beyond noise: compares the JSON of gpu_bench, peers.py or `kiln bench`.

    python3 bench/compare.py before.json after.json [--threshold 2] [--contender kiln]

A timing has moved when its medians differ by more than the threshold and by more than both runs' noise together
(docs/benchmarks.md); counts of instructions when they differ by more than 1 %. Exit status: 0 nothing became slower,
longer or was lost, 1 something did, 2 wrong usage, or files that
cannot be compared.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from results_file import ResultsError, beyond_noise, ending, read, timed  # noqa: E402


def timings(document, contender):
    return {(w["name"], name): c for w in document["workloads"] for name, c in timed(w).items()
            if not contender or name == contender}


UNTOLD = r"--(json|commit|library|cupti|family|filter)\b"  # options that do not change how a workload is timed


def form_of(command):
    """The command as far as it says how workloads were timed: no folders, not what was chosen, not where results went."""
    program, *options = re.split(r"\s(?=--)", command)
    program = " ".join(os.path.basename(word) for word in program.split())
    return " ".join([program] + [o for o in options if not re.match(UNTOLD, o)])


def differences(before, after):
    """What makes two runs no like for like."""
    facts = [(name, *(d["machine"].get(field) for d in (before, after)))
             for name, field in (("device", "device"), ("driver", "driver"), ("toolkit", "toolkit"), ("host", "host"),
                                 ("host threads", "host_threads"))]
    facts += [("L2", *((d.get("method") or {}).get("l2") for d in (before, after))),
              ("command", form_of(before["command"]), form_of(after["command"]))]
    told = lambda value: "not given" if value is None else value
    return [f"{name}: {told(a)} before, {told(b)} after" for name, a, b in facts if a != b]


def has_moved(a, b, threshold):
    return abs(b["us"]["median"] / a["us"]["median"] - 1) * 100 > threshold and beyond_noise(a, b)


def line_of(key, a, b):
    before, after = a["us"]["median"], b["us"]["median"]
    return f"  {key[0]}, {key[1]}: {before:.4g} -> {after:.4g} us ({(after / before - 1) * 100:+.1f} %)"


def print_list(title, lines):
    if lines:
        print(f"{title}:")
        print("\n".join(lines))


INSTRUCTIONS_THRESHOLD = 1  # percent: counts do not depend on the machine, only a little on addresses


def counts_of(document, contender):
    return document.get("instructions", {}) if contender in ("", "kiln") else {}


def moved_counts(old, new):
    """Lines of those that grew, of those that shrank, and of those that are gone."""
    moved = [k for k in old if k in new and abs(new[k] - old[k]) * 100 > INSTRUCTIONS_THRESHOLD * old[k]]
    by = lambda k: f" ({(new[k] / old[k] - 1) * 100:+.1f} %)" if old[k] else ""
    line = lambda k: f"  {k}: {old[k]} -> {new[k]} instructions{by(k)}"
    return ([line(k) for k in moved if new[k] > old[k]], [line(k) for k in moved if new[k] < old[k]],
            [f"  {k}, instructions" for k in old if k not in new])


def check_comparable(old, new, old_counts, new_counts, contender):
    if old.keys() & new.keys() or old_counts.keys() & new_counts.keys():
        return
    sizes = [f"{len(t)} timings and {len(c)} counts" for t, c in ((old, old_counts), (new, new_counts))]
    raise ResultsError(f"the runs must have a timing or a count of instructions in common: got {sizes[0]} before, "
                       f"{sizes[1]} after" + (f" of contender {contender!r}" if contender else ""))


def compare(before, after, args):
    old, new = timings(before, args.contender), timings(after, args.contender)
    old_counts, new_counts = counts_of(before, args.contender), counts_of(after, args.contender)
    check_comparable(old, new, old_counts, new_counts, args.contender)
    both = [k for k in old if k in new]
    other_clock = [k for k in both if old[k]["clock"] != new[k]["clock"]]
    both = [k for k in both if k not in other_clock]
    moved = [k for k in both if has_moved(old[k], new[k], args.threshold)]
    ratio = lambda k: new[k]["us"]["median"] / old[k]["us"]["median"]
    slower = sorted((k for k in moved if ratio(k) > 1), key=ratio, reverse=True)
    faster = sorted((k for k in moved if ratio(k) < 1), key=ratio)
    more, fewer, uncounted = moved_counts(old_counts, new_counts)
    lost = [f"  {w}, {c}" for w, c in old if (w, c) not in new] + uncounted
    print_list("not like for like", ["  " + d for d in differences(before, after)])
    print_list("slower", [line_of(k, old[k], new[k]) for k in slower])
    print_list("faster", [line_of(k, old[k], new[k]) for k in faster])
    print_list("more instructions", more)
    print_list("fewer instructions", fewer)
    print_list("measured before, not now", lost)
    print_list("new", [f"  {w}, {c}" for w, c in new if (w, c) not in old])
    print_list("not compared, timed by another clock", [f"  {w}, {c}" for w, c in other_clock])
    same_counts = len(old_counts.keys() & new_counts.keys()) - len(more) - len(fewer)
    print(f"{len(slower)} slower, {len(faster)} faster, {len(both) - len(moved)} within noise or {args.threshold:g} %, "
          f"{len(lost)} lost; instructions: {len(more)} more, {len(fewer)} fewer, {same_counts} alike; "
          f"{before['commit'] or 'before'} -> {after['commit'] or 'after'}")
    return 1 if slower or lost or more else 0


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("before")
    p.add_argument("after")
    p.add_argument("--threshold", type=float, default=2, help="percent below which nothing is said; 2")
    p.add_argument("--contender", default="", help="only this one: kiln, torch, copy, ...")
    args = p.parse_args(argv)
    if not args.threshold >= 0:
        p.error(f"--threshold: must be 0 or more, in percent: got {args.threshold}")
    return ending(lambda: compare(read(args.before), read(args.after), args))


if __name__ == "__main__":
    sys.exit(main())
