"""Builds and runs the tests of one or several presets and adds up what ctest reports. Called by ./test."""
import argparse
import os
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRESETS = ("dev", "asan", "tsan")
# Lints look at sources, which no sanitizer changes; a sanitizer's runtime and the driver do not share a process; and the
# compilation of every kernel for every board (slow) is NVRTC's work.
SKIPPED_LABELS = {"asan": "lint|tidy|gpu|slow", "tsan": "lint|tidy|gpu|slow"}


class Totals:
    def __init__(self):
        self.passed = self.skipped = 0
        self.failures = []  # "preset: name"
        self.logs = []

    def fail(self, preset, what):
        self.failures.append(f"{preset}: {what}")


def prefix(preset):
    """ThreadSanitizer's shadow memory does not fit every random layout of the address space: switch that off."""
    if preset != "tsan":
        return []
    command = ["setarch", platform.machine(), "-R"]
    try:
        ok = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        ok = False
    if not ok:
        print("tsan: setarch -R is not possible here; running with a random address space", flush=True)
    return command if ok else []


def step(preset, name, command):
    """Runs one command; its output is shown. True if it succeeded."""
    print(f"== {preset}: {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
    print(f"== {preset}: {name}: {'ok' if code == 0 else f'FAILED ({code})'}, "
          f"{time.monotonic() - started:.0f} s", flush=True)
    return code == 0


def read_report(preset, path, ctest_ok, totals):
    """Adds one JUnit file to `totals`. ctest writes status run, fail, notrun or disabled."""
    try:
        cases = xml.etree.ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        totals.fail(preset, f"ctest left no report: {error}")
        return
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        status, skipped = case.get("status"), case.find("skipped")
        # A test whose program is missing is `notrun` too, and carries a reason that no skip has.
        reason = skipped.get("message", "") if skipped is not None else ""
        if status == "run":
            counts["passed"] += 1
        elif status == "disabled" or (status == "notrun" and reason.startswith("SKIP_")):
            counts["skipped"] += 1
        else:
            counts["failed"] += 1
            totals.fail(preset, case.get("name") + (f" ({reason})" if reason else ""))
    totals.passed += counts["passed"]
    totals.skipped += counts["skipped"]
    print(f"== {preset}: " + ", ".join(f"{n} {word}" for word, n in counts.items()), flush=True)
    if sum(counts.values()) == 0:
        totals.fail(preset, "no test was run")
    elif not ctest_ok and counts["failed"] == 0:
        totals.fail(preset, "ctest failed although no test did")


def run_preset(preset, args, totals):
    jobs = str(os.cpu_count() or 2)
    build = os.path.join(ROOT, "build", preset)
    report = os.path.join(build, "test_report.xml")
    before = prefix(preset)  # also for the build, which asks each test program for its list of tests
    if not step(preset, "configure", ["cmake", "--preset", preset]):
        return totals.fail(preset, "configure")
    # -k 0: one source that does not compile does not hide the others.
    if not step(preset, "build", [*before, "cmake", "--build", build, "-j", jobs, "--", "-k", "0"]):
        return totals.fail(preset, "build")
    if os.path.exists(report):
        os.remove(report)
    # The preset says what a sanitizer's runtime must know: the process's own runtime lives until the end, threads and
    # all, and children are forked that go on (both by design).
    command = [*before, "ctest", "--preset", preset, "-j", jobs, "--output-junit", report, "--timeout", "600"]
    if args.label:
        command += ["-L", args.label]
    elif preset in SKIPPED_LABELS:
        command += ["-LE", SKIPPED_LABELS[preset]]
    if args.name:
        command += ["-R", args.name]
    ok = step(preset, "test", command)
    totals.logs.append(os.path.relpath(os.path.join(build, "Testing", "Temporary", "LastTest.log"), ROOT))
    read_report(preset, report, ok, totals)
    return None


def main():
    parser = argparse.ArgumentParser(prog="./test")
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="dev, asan, tsan (default: all)")
    parser.add_argument("-L", "--label", help="only tests with a label that matches this pattern")
    parser.add_argument("-R", "--name", help="only tests with a name that matches this pattern")
    args = parser.parse_args()
    unknown = [p for p in args.presets if p not in PRESETS]
    if unknown:
        parser.error(f"a preset is one of {', '.join(PRESETS)}, got {' '.join(unknown)}")
    totals = Totals()
    started = time.monotonic()
    for preset in args.presets or PRESETS:
        run_preset(preset, args, totals)
    print()
    if totals.logs:
        print("logs: " + " ".join(totals.logs))
    for failure in totals.failures:
        print(f"failed: {failure}")
    print(f"took {(time.monotonic() - started) / 60:.1f} minutes")
    print(f"{totals.passed} passed, {len(totals.failures)} failed, {totals.skipped} skipped", flush=True)
    return 0 if not totals.failures and totals.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
