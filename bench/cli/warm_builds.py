"""warm_builds.py KILN [BUILDS [WIDTH...]]: `kiln warm` of BUILDS calls, 200 unless given, each time into an empty cache,
by 1, 2, 4, ... builds at once up to the cores unless widths are given; then once more into the full one. One JSON object
a run. Ends with 1 where a summary does not add up."""
import json
import os
import subprocess
import sys
import tempfile


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
    return json.loads(subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout)


def adds_up(report, count, built):
    parts = report["built"] + report["missing"] + sum(report["hits"].values())
    return (report["calls"], report["identities"], parts, report["built"]) == (count, count, count, built) and not (
        report["failed"] or report["failures"] or report["not_done"] or report["interrupted"])


def main():
    kiln, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    cores = len(os.sched_getaffinity(0))
    widths = [int(word) for word in sys.argv[3:]] or sorted({2**i for i in range(10) if 2**i <= cores} | {cores})
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
