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
        raise ResultsError(f"{where}: {must}: got {short(got)}")


def short(value):
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + " ..."


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


# Kinds of values: whether one is of it, and what it must be.
TEXT = (lambda v: isinstance(v, str), "a string")
NAME = (lambda v: isinstance(v, str) and v.strip() != "", "a string that is not empty")
NUMBER = (is_number, "a number")
COUNT = (lambda v: is_number(v) and v >= 0, "a number, 0 or more")
ABOVE_0 = (lambda v: is_number(v) and v > 0, "a number above 0")
# A result may be infinitely far from another.
DISTANCE = (lambda v: isinstance(v, (int, float)) and not isinstance(v, bool), "a number")
LIST = (lambda v: isinstance(v, list), "a list")
OBJECT = (lambda v: isinstance(v, dict), "an object")
NUMBERS = (lambda v: isinstance(v, list) and all(map(is_number, v)), "a list of numbers")
SHARES = (lambda v: isinstance(v, list) and all(isinstance(p, list) and len(p) == 2 and all(map(is_number, p)) for p in v)
          and any(p[0] < 1 for p in v), "a list of [share, microseconds], with a share below 1")

# Fields that some program reads; MAPS: the values of those.
REQUIRED = {"date": TEXT, "command": TEXT, "commit": TEXT, "machine": OBJECT, "workloads": LIST}
OPTIONAL = {"method": OBJECT, "floor": OBJECT, "peers": OBJECT, "instructions": OBJECT, "seconds": OBJECT, "not_run": LIST}
MACHINE = {"device": TEXT, "driver": TEXT, "toolkit": COUNT, "cupti": TEXT, "host": TEXT, "host_threads": COUNT}
METHOD = {"clock": TEXT, "l2": TEXT, "order": TEXT, "graph": TEXT}
MAPS = {"peers": TEXT, "instructions": COUNT, "seconds": COUNT}
STATE = {"sm_mhz": NUMBER, "watts": NUMBER, "celsius": NUMBER, "throttle_reasons": COUNT}
WORKLOAD = {"op": TEXT, "bytes": COUNT, "flops": COUNT, "seconds": COUNT, "state": OBJECT}
CONTENDER = {"bytes": ABOVE_0, "pass_us": NUMBERS, "difference_from_kiln": DISTANCE, "percentiles_us": SHARES,
             "curve_us": SHARES, "beside": OBJECT, "error": TEXT, "unavailable": TEXT, "ready_s": COUNT, "served_by": TEXT}


def check_fields(holder, where, kinds, required=False, prefix=""):
    for field, (is_of, what) in kinds.items():
        value = holder.get(field)
        need(is_of(value) or not (required or field in holder), where,
             f"\"{prefix}{field}\" must be " + ("there, " if required else "") + what, value)


def check_map(holder, where, field, kind):
    check_fields(holder.get(field) or {}, where, dict.fromkeys(holder.get(field) or {}, kind), True, field + ".")


def check_spread(us, where, field="us"):
    need(isinstance(us, dict), where, f"\"{field}\" must be an object", us)
    check_fields(us, where, dict.fromkeys(("median", "p10", "p90"), ABOVE_0), True, field + ".")
    check_fields(us, where, {"count": COUNT}, False, field + ".")
    need(us["p10"] <= us["median"] <= us["p90"], where, f"{field} must hold p10 <= median <= p90", us)


def check_contender(c, where):
    need(isinstance(c, dict), where, "a contender must be an object", c)
    check_fields(c, where, {"name": NAME}, True, "contenders' ")
    where = f"{where}: {c['name']}"
    check_fields(c, where, CONTENDER)
    check_map(c, where, "beside", NUMBER)
    if "us" in c:
        check_spread(c["us"], where)
        need(isinstance(c.get("clock"), str), where, "\"clock\" must say how it was timed", c.get("clock"))
    else:
        need("error" in c or "unavailable" in c, where, "must hold \"us\", \"error\" or \"unavailable\"", sorted(c))


def check_workload(w, path):
    need(isinstance(w, dict), path, "a workload must be an object", w)
    check_fields(w, path, {"name": NAME, "family": NAME}, True, "workloads' ")
    where = f"{path}: {w['name']}"
    check_fields(w, where, WORKLOAD)
    check_fields(w, where, {"contenders": LIST, **({"flops": ABOVE_0} if w["family"] == "gemm" else {})}, True)
    if w.get("state"):
        check_fields(w["state"], where, STATE, True, "state.")
    for c in w["contenders"]:
        check_contender(c, where)


def check(document, path):
    """ResultsError unless `document` has the form of docs/benchmarks.md, as far as programs read it."""
    need(isinstance(document, dict), path, "must hold an object", type(document).__name__)
    need(document.get("format") == FORMAT, path, f"\"format\" must be {FORMAT!r}", document.get("format"))
    need(document.get("version") == VERSION, path, f"\"version\" must be {VERSION}", document.get("version"))
    check_fields(document, path, REQUIRED, True)
    check_fields(document, path, OPTIONAL)
    check_fields(document["machine"], path, MACHINE, False, "machine.")
    check_fields(document.get("method") or {}, path, METHOD, False, "method.")
    for field, kind in MAPS.items():
        check_map(document, path, field, kind)
    if document.get("floor"):
        check_fields(document["floor"], path, {"bytes_per_second": ABOVE_0}, True, "floor.")
        check_spread(document["floor"].get("empty_kernel_us"), path, "floor.empty_kernel_us")
    for one in document.get("not_run") or []:
        need(isinstance(one, dict), path, "\"not_run\" must be a list of objects", one)
        check_fields(one, path, {"name": TEXT, "reason": TEXT}, True, "not_run's ")
    for w in document["workloads"]:
        check_workload(w, path)


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as e:
        raise ResultsError(f"{path}: must be a file that can be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ResultsError(f"{path}: must be text in UTF-8: {e}") from e


def parse(text, where):
    """A field that is null counts as left out."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if v is not None})
    except (ValueError, RecursionError) as e:
        raise ResultsError(f"{where}: must be JSON: {e}") from e


def read(path):
    document = parse(read_text(path), path)
    check(document, path)
    return document


def write_whole(path, text):
    """All of it or nothing: what was there stays when it cannot be written."""
    path = os.path.realpath(path)
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as e:
        if os.path.isfile(part):
            os.remove(part)
        raise ResultsError(f"{path}: must be a file that can be written: {e.strerror}") from e


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
