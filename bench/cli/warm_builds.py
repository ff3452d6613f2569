"""warm_builds.py KILN [BUILDS [WIDTH...]]: `kiln warm` of BUILDS calls, 200 unless given, each time into an empty cache,
by 1, 2, 4, ... builds at once up to the cores unless widths are given; then once more into the full one. One JSON object
a run. Ends with 1 where a summary does not add up."""
import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kiln_program import count as whole, json_of, program  # noqa: E402


def calls(count):
    """As many different identities of one kernel, over a few dtypes and shapes."""
    for i in range(count):
        size, dtype = 256 * (1 + i % 16), ["float16", "bfloat16"][i // 16 % 2]
        x = {"dtype": dtype, "shape": [64, size]}
        yield json.dumps({"op": "LayerNormFwdOp", "params": {"normalized_shape": [size], "eps": 1e-5 * (1 + i // 32)},
                          "inputs": {"x": x, "weight": {"dtype": dtype, "shape": [size]}}})


def warm(kiln, cache, file, width):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment.update(KILN_CACHE_DIR=cache, KILN_JOBS=str(width))
    words = [kiln, "warm", "--calls", file, "--board", "h200", "--jobs", str(width), "--json"]
    return json_of(words, environment)


def adds_up(report, count, built):
    parts = report["built"] + report["missing"] + sum(report["hits"].values())
    return (report["calls"], report["identities"], parts, report["built"]) == (count, count, count, built) and not (
        report["failed"] or report["failures"] or report["not_done"] or report["interrupted"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln", metavar="KILN", type=program, help="the program that is measured")
    parser.add_argument("builds", metavar="BUILDS", type=whole, nargs="?", default=200, help="calls to be built; 200")
    parser.add_argument("widths", metavar="WIDTH", type=whole, nargs="*", default=[], help="builds at once")
    args = parser.parse_args()
    kiln, count = args.kiln, args.builds
    cores = len(os.sched_getaffinity(0))
    widths = args.widths or sorted({2**i for i in range(10) if 2**i <= cores} | {cores})
    right, alone = True, None
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "calls.jsonl")
        with open(file, "w", encoding="utf-8") as out:
            out.write("".join(line + "\n" for line in calls(count)))
        for width in widths:
            cache = os.path.join(folder, str(width))
            for built in (count, 0):
                report = warm(kiln, cache, file, width)
                right = adds_up(report, count, built) and right
                seconds = report["seconds"]
                line = {"width": width, "built": report["built"], "hits": sum(report["hits"].values()),
                        "seconds": round(seconds, 3)}
                if built:
                    alone = alone or seconds * width
                    line.update(builds_a_second=round(built / seconds, 1), speed_up=round(alone / seconds, 2))
                print(json.dumps(line), flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
