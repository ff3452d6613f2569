"""clang-tidy over every source of the library, the backends and the command line that the build compiles.

    tidy.py --build DIR [--jobs N] [--only REGEX]    exits 1 if anything is found or if it could not run
    tidy.py --self-test --config FILE                shows that a badly named function is found

Test sources are left out: GoogleTest's macros break every naming rule, and names.py looks at what remains.
A source that passed is not looked at again until it, a header of it, its flags or the rules change: DIR/lint_tidy
holds an empty file for each, named by the hash of all of these.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDERS = ("base/", "cache/", "jit/", "runtime/", "kernel_sources/", "backends/", "cli/", "examples/")
REPORT = re.compile(r"^(.*?):(\d+):\d+: (error|warning): (.*)$")


def sources(build, only):
    """The compile command of each source, by its path."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        rows = {os.path.relpath(row["file"], ROOT): row for row in json.load(f)}
    return {p: rows[p] for p in sorted(rows) if p.startswith(FOLDERS) and p.endswith(".cc") and re.search(only, p)}


def stamp_of(build, row, rules):
    """The file that is there once this source has passed as it is now; None where it does not preprocess."""
    words = shlex.split(row["command"])
    output = words.index("-o")
    # -C: a NOLINT is a comment.
    done = subprocess.run(words[:output] + words[output + 2:] + ["-E", "-C"], capture_output=True, cwd=row["directory"],
                          check=False)
    if done.returncode != 0:
        return None
    parts = (rules, row["command"].encode(), done.stdout)
    return os.path.join(build, "lint_tidy", hashlib.sha256(b"\0".join(parts)).hexdigest())


def run_one(program, build, path, extra=()):
    done = subprocess.run([program, "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", *extra, path],
                          capture_output=True, text=True, cwd=ROOT, check=False)
    found = []
    for line in done.stdout.split("\n"):
        match = REPORT.match(line)
        if match:
            found.append(f"{os.path.relpath(match.group(1), ROOT)}:{match.group(2)}: {match.group(4)}")
    if done.returncode != 0 and not found:
        found.append(f"{path}:1: clang-tidy could not run: {(done.stdout + done.stderr).strip()[-2000:]}")
    return found


def check_one(program, build, path, row, rules):
    """What is found, and whether it is known without a look."""
    stamp = stamp_of(build, row, rules)
    if stamp and os.path.exists(stamp):
        return [], True
    found = run_one(program, build, path)
    if stamp and not found:
        os.makedirs(os.path.dirname(stamp), exist_ok=True)
        with open(stamp, "wb"):
            pass
    return found, False


def check(program, version, build, jobs, only):
    rows = sources(build, only)
    if not rows:
        print(f"tests/lint/tidy.py:1: could not run: {build}/compile_commands.json names no source of the tree")
        return 1
    rules = version.encode()
    for path in (os.path.join(ROOT, ".clang-tidy"), os.path.abspath(__file__)):
        with open(path, "rb") as f:
            rules += f.read()
    found = set()
    known = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(check_one, program, build, path, row, rules) for path, row in rows.items()]
        for count, run in enumerate(concurrent.futures.as_completed(runs), 1):
            reports, was_known = run.result()
            known += was_known
            for line in sorted(set(reports) - found):
                print(line, flush=True)
            found.update(reports)
            if count % 10 == 0:
                print(f"lint tidy: {count} of {len(rows)} sources", flush=True)
    print(f"lint tidy: {len(rows)} sources, {known} of them unchanged since they passed, {len(found)} found")
    return 1 if found else 0


def self_test(program, config):
    with tempfile.TemporaryDirectory(prefix="kiln_lint_") as folder:
        source = os.path.join(folder, "bad.cc")
        with open(source, "w", encoding="utf-8") as f:
            f.write("int badName(int x) { return x; }\nint good_name(int x) { return badName(x); }\n")
        with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump([{"directory": folder, "file": source, "command": f"g++ -std=c++20 -c {source}"}], f)
        found = run_one(program, folder, source, [f"--config-file={config}"])
    wrong = [line for line in found if "invalid case style for function 'badName'" not in line]
    if wrong or len(found) != 1:
        print("lint tidy: want one report, about badName, got:", *found, sep="\n  ")
        return 1
    print("lint tidy: reported the fault of its example and nothing else")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", default="")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--config", default=os.path.join(ROOT, ".clang-tidy"))
    args = parser.parse_args()
    program = shutil.which(os.environ.get("CLANG_TIDY", "clang-tidy"))
    if not program:
        print("tests/lint/tidy.py:1: could not run: no clang-tidy; install Debian's clang-tidy")
        return 1
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    print("lint tidy:", next((line.strip() for line in version.split("\n") if "version" in line), version.strip()))
    if args.self_test:
        return self_test(program, args.config)
    return check(program, version, args.build, args.jobs, args.only)


if __name__ == "__main__":
    sys.exit(main())
