#!/usr/bin/env python3
"""compile_times.py [--kiln FILE] [--arch ARCH] [--rounds N] [CALLS.jsonl ...]

What each shipped program costs to compile: `kiln warm` with an empty cache and one compile worker builds the calls of
the families' problems.jsonl, and the spans of its trace are the compilations. Prints Markdown: for every source how
many programs it made, and of their medians over the rounds the middle and the longest.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compilations(kiln, calls, arch):
    """Milliseconds of every compilation that warming `calls` makes, with its source, in the order of the calls."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "trace.json")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_CACHE")}
        environment |= {"KILN_TRACE": str(trace), "KILN_CACHE_DIR": folder + "/cache", "KILN_JOBS": "1"}
        subprocess.run([kiln, "warm", "--calls", calls, "--arch", arch], env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        spans = [json.loads(line.rstrip(",\n")) for line in trace.read_text().splitlines() if line.startswith("{")]
    spans = sorted((span for span in spans if span["name"] == "compile"), key=lambda span: span["ts"])
    return [(span["args"]["what"].split(" for ")[0], span["dur"] / 1e3) for span in spans]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", default=str(ROOT / "build/release/bin/kiln"))
    parser.add_argument("--arch", default="90")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("calls", nargs="*", help="all families' by default")
    options = parser.parse_args()
    files = options.calls or sorted(str(path) for path in ROOT.glob("kernel_sources/*/problems.jsonl"))
    programs = collections.defaultdict(list)  # (source, place among its programs): milliseconds of each round
    for _ in range(options.rounds):
        for calls in files:
            seen = collections.Counter()
            for source, milliseconds in compilations(options.kiln, calls, options.arch):
                programs[source, seen[source]].append(milliseconds)
                seen[source] += 1
    sources = collections.defaultdict(list)
    for (source, _), rounds in programs.items():
        sources[source].append(statistics.median(rounds))
    if not sources:
        sys.exit("compile_times: nothing was compiled: the calls must be of kernels that NVRTC builds")
    print("| source | programs | middle, ms | longest, ms |\n|---|---|---|---|")
    for source, medians in sorted(sources.items(), key=lambda item: -max(item[1])):
        name = source.removeprefix("kernel_sources/")
        print(f"| `{name}` | {len(medians)} | {statistics.median(medians):.0f} | {max(medians):.0f} |")


if __name__ == "__main__":
    main()
