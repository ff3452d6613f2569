"""Compiles a source that must compile, or that must not and then say a sentence. For ctest.

compile.py good -- COMPILER ARGUMENTS…
compile.py SENTENCE -- COMPILER ARGUMENTS…
"""
import subprocess
import sys


def main():
    wanted = sys.argv[1]
    command = sys.argv[sys.argv.index("--") + 1:]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
    said = ended.stdout + ended.stderr
    if wanted == "good":
        print(said)
        return ended.returncode
    if ended.returncode == 0:
        print(f"it compiles, and should not: {wanted}")
        return 1
    # A sentence in an `error:` line, not one that happens to be quoted below it.
    errors = [line for line in said.splitlines() if "error:" in line]
    if any(wanted in line for line in errors):
        return 0
    print(f"it fails, and no error says: {wanted}\n" + "\n".join(errors))
    return 1


sys.exit(main())
