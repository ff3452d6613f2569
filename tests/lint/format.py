"""clang-format over every source. A lint that cannot run fails and says so."""
import os
import re
import shutil
import subprocess

CLANG_FORMAT = os.environ.get("CLANG_FORMAT", "clang-format")
REPORT = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): (.*?) \[-Wclang-format-violations\]")


def check(tree):
    program = shutil.which(CLANG_FORMAT)
    if not program:
        yield "tests/lint/format.py", 1, f"could not run: no {CLANG_FORMAT}; install Debian's clang-format"
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"lint format: {version}")
    paths = tree.files((".h", ".cc", ".cu", ".cuh"))
    for start in range(0, len(paths), 50):
        batch = paths[start:start + 50]
        done = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *batch], cwd=tree.root,
                              capture_output=True, text=True, check=False)
        seen = set()
        for line in done.stderr.split("\n"):
            match = REPORT.match(line)
            if match and match.group(1) not in seen:  # the first place of a file is enough: `ninja format` mends all
                seen.add(match.group(1))
                yield match.group(1), int(match.group(2)), "is not formatted: run `ninja format`"
        if done.returncode != 0 and not seen:
            yield "tests/lint/format.py", 1, f"could not run: {done.stderr.strip()}"


EXAMPLE = {".clang-format": "BasedOnStyle: Google\n", "base/bad.cc": "int  x;\n", "base/good.cc": "int x;\n"}
EXPECTED = ["base/bad.cc:1: is not formatted: run `ninja format`"]
