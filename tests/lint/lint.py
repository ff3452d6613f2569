"""What the lints share: the tree's files, the form of a report, and the self-test that shows a lint can fail.

    python3 tests/lint/lint.py NAME [--root DIR]     prints `path:line: what is wrong`, exits 1 if anything is
    python3 tests/lint/lint.py NAME --self-test      runs it on its own bad example

A lint is a module beside this one with `check(tree)`, which yields (path, line, text), with EXAMPLE, a small tree
{path: text}, and EXPECTED, the exact reports that tree must give.
"""
import argparse
import importlib
import os
import subprocess
import sys
import tempfile

SKIPPED_FOLDERS = {"build", "portable", ".git", ".cache", "__pycache__"}
CODE = (".h", ".cc", ".cu", ".cuh", ".inc")


class Tree:
    """The files under a root that belong to the project, by path relative to it."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self._paths = self._from_git() or self._from_walk()

    def _from_git(self):
        if not os.path.exists(os.path.join(self.root, ".git")):
            return None
        done = subprocess.run(["git", "-C", self.root, "ls-files", "-z", "-co", "--exclude-standard"],
                              capture_output=True, check=False)
        if done.returncode != 0:  # no git, or a checkout that another user owns
            return None
        names = [os.fsdecode(n) for n in done.stdout.split(b"\0") if n]
        return sorted(n for n in names if os.path.isfile(os.path.join(self.root, n)))

    def _from_walk(self):
        paths = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
            paths += [os.path.relpath(os.path.join(folder, n), self.root) for n in names]
        return sorted(paths)

    def files(self, suffixes=None):
        return [p for p in self._paths if suffixes is None or p.endswith(suffixes)]

    def code(self):
        """C++ and device sources, without those that must not compile."""
        return [p for p in self.files(CODE) if not p.startswith("tests/compile_fail/")]

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace", newline="") as f:
            return f.read()

    def lines(self, path):
        return enumerate(self.text(path).split("\n"), start=1)

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))


def reports(module, root):
    return [f"{path}:{line}: {what}" for path, line, what in module.check(Tree(root))]


def self_test(module, name):
    with tempfile.TemporaryDirectory(prefix="kiln_lint_") as root:
        for path, text in module.EXAMPLE.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8", newline="") as f:
                f.write(text)
        got, want = reports(module, root), module.EXPECTED
    missing = [w for w in want if w not in got]
    extra = [g for g in got if g not in want]
    for m in missing:
        print(f"lint {name} did not report: {m}")
    for e in extra:
        print(f"lint {name} reported, and should not have: {e}")
    if not want:
        print(f"lint {name} expects no report from its example: it could not fail")
    if missing or extra or not want:
        return 1
    print(f"lint {name}: reported all {len(want)} faults of its example and nothing else")
    return 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, here)
    module = importlib.import_module(args.name)
    if args.self_test:
        return self_test(module, args.name)
    found = reports(module, args.root)
    for line in found:
        print(line)
    print(f"lint {args.name}: {len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
