"""Reads the JSON that gpu_bench, peers.py and `kiln bench` write (docs/benchmarks.md), and says what in it is noise."""
import json
import math
import os
import sys

FORMAT, VERSION = "kiln-bench", 1
TICK_US = 0.032  # of the clock that stamps kernels on the device


class ResultsError(Exception):
    """What must hold of a results file, and what was found."""


def ending(work):
    """How a program over results files ends: with what `work()` returns, or 2 and what is wrong on stderr."""
    try:
        return work() or 0
    except (ResultsError, OSError) as e:
        print(f"{os.path.basename(sys.argv[0])}: {e}", file=sys.stderr)
        return 2


def need(held, where, must, got):
    if not held:
        raise ResultsError(f"{where}: {must}: got {got!r}")


def check_spread(us, where):
    need(isinstance(us, dict), where, "\"us\" must be an object", us)
    for field in ("median", "p10", "p90"):
        value = us.get(field)
        need(isinstance(value, (int, float)) and math.isfinite(value) and value > 0, where,
             f"us.{field} must be a number above 0", value)
    need(us["p10"] <= us["median"] <= us["p90"], where, "us must hold p10 <= median <= p90", us)


def check(document, path):
    """ResultsError unless `document` has the form of docs/benchmarks.md."""
    need(isinstance(document, dict), path, "must hold an object", type(document).__name__)
    need(document.get("format") == FORMAT, path, f"\"format\" must be {FORMAT!r}", document.get("format"))
    need(document.get("version") == VERSION, path, f"\"version\" must be {VERSION}", document.get("version"))
    for field, kind in (("date", str), ("command", str), ("commit", str), ("machine", dict), ("workloads", list)):
        need(isinstance(document.get(field), kind), path, f"\"{field}\" must be there, a {kind.__name__}",
             document.get(field))
    for w in document["workloads"]:
        need(isinstance(w, dict) and all(isinstance(w.get(f), str) for f in ("name", "family")), path,
             "a workload must have \"name\" and \"family\"", w)
        need(isinstance(w.get("contenders"), list), f"{path}: {w['name']}", "\"contenders\" must be a list",
             w.get("contenders"))
        for c in w["contenders"]:
            need(isinstance(c, dict) and isinstance(c.get("name"), str), f"{path}: {w['name']}",
                 "a contender must have a \"name\"", c)
            where = f"{path}: {w['name']}: {c['name']}"
            if "us" in c:
                check_spread(c["us"], where)
                need(isinstance(c.get("clock"), str), where, "\"clock\" must say how it was timed", c.get("clock"))
            else:
                need("error" in c or "unavailable" in c, where, "must hold \"us\", \"error\" or \"unavailable\"",
                     sorted(c))


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as e:
        raise ResultsError(f"{path}: must be a file that can be read: {e.strerror}") from e
    except ValueError as e:
        raise ResultsError(f"{path}: must be JSON: {e}") from e
    check(document, path)
    return document


def timed(workload):
    """Contenders by name, those that were timed."""
    return {c["name"]: c for c in workload["contenders"] if "us" in c}


def noise_us(contender):
    """How far the median may lie off by chance: three standard errors of a median, what the two passes of one run lie
    apart, or one tick of the device's clock, whichever is most."""
    us = contender["us"]
    sigma = (us["p90"] - us["p10"]) / 2.563
    passes = contender.get("pass_us") or [0]
    tick = TICK_US if contender.get("clock") in ("cupti", "events") else 0
    return max(3 * 1.253 * sigma / math.sqrt(max(1, us.get("count", 1))), max(passes) - min(passes), tick)


def beyond_noise(a, b):
    """Whether two timings' medians differ by more than both their noise together."""
    return abs(a["us"]["median"] - b["us"]["median"]) > math.hypot(noise_us(a), noise_us(b))
