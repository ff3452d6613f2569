#!/usr/bin/env python3
"""compile_times.py [--kiln FILE] [--arch ARCH] [--rounds N] [CALLS.jsonl ...]

What each shipped program costs to compile: `kiln warm` builds the calls of the families' problems.jsonl, and then
`kiln compile` makes every artifact once more, alone, in this process's place. The time is the processor time of that
whole process, its start and NVRTC's included (an empty kernel tells how much that is): unlike elapsed time it hardly
depends on what else the machine does. Prints Markdown: for every source how many programs it made, and of their
medians over the rounds the middle and the longest.
"""
import argparse
import collections
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from kiln_program import count, fail, json_of, output_of, program  # noqa: E402

EMPTY = 'extern "C" __global__ void empty() {}\n'


def processor_ms(words, environment):
    """User and system time of a process, in milliseconds."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            fail(words, f"ended with {process.returncode}", said.read())
    return (usage.ru_utime + usage.ru_stime) * 1e3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", type=program, default=str(ROOT / "build/release/bin/kiln"), metavar="FILE",
                        help="the program that is measured; of the release build")
    parser.add_argument("--arch", default="90", help="compiled for this one, as 90 or sm_90; 90")
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="medians are of as many compilations; 3")
    parser.add_argument("calls", nargs="*", metavar="CALLS.jsonl", help="files of calls; all families' problems.jsonl")
    return parser.parse_args()


def main():
    options = arguments()
    files = options.calls or sorted(str(path) for path in ROOT.glob("kernel_sources/*/problems.jsonl"))
    sources = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_CACHE")}
        environment["KILN_CACHE_DIR"] = folder
        warm = [[options.kiln, "warm", "--calls", calls, "--arch", options.arch] for calls in files]
        for words in warm:  # before work begins
            output_of([*words, "--dry-run"], environment)
        for words in warm:
            output_of(words, environment)
        listed = json_of([options.kiln, "cache", "list", "--json"], environment)
        environment["KILN_JOBS"] = "0"  # in the process that is measured

        def median(*words):
            return statistics.median(processor_ms([options.kiln, "compile", *words], environment)
                                     for _ in range(options.rounds))

        pathlib.Path(folder, "empty.cu").write_text(EMPTY)
        sources["(an empty kernel)"] = [median(folder + "/empty.cu", "--target",
                                               "sm_" + options.arch.removeprefix("sm_"))]
        for artifact in listed["entries"]:
            sources[artifact["source"].removeprefix("kernel_sources/")].append(median(artifact["key"]))
    print("| source | programs | middle, ms | longest, ms |\n|---|---|---|---|")
    for source, medians in sorted(sources.items(), key=lambda item: -max(item[1])):
        print(f"| `{source}` | {len(medians)} | {statistics.median(medians):.0f} | {max(medians):.0f} |")


if __name__ == "__main__":
    main()
