"""Words that have no place in the tree: paths of one machine, unfinished work, package-registry hosts, and in cli/ what
prints to a terminal without the guard."""
import re

HERE = "tests/lint/words.py"
BANNED = [
    (re.compile(r"(?<![\w.<$}/-])/(work|root)/|(?<![\w.<$}/-])/home/\w"), "names a path of one machine"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "marks unfinished work: finish it, or open an issue"),
    # NVIDIA's own word for the libcuda.so of the toolkit is "stub library"
    (re.compile(r"(?<!toolkit's )\bstub\b(?! librar)", re.I), "speaks of a stub: the tree holds only what works"),
    (re.compile(r"\b(pypi\.org|files\.pythonhosted\.org|registry\.npmjs\.org|crates\.io|proxy\.golang\.org|"
                r"(deb|security)\.debian\.org|conda\.anaconda\.org|index-url)\b"), "names a package registry's host"),
]
# What these print is made of what they know, or has been made printable.
PRINTS_ITSELF = ("cli/session.cc", "cli/progress.cc", "cli/tune_child.cc")
PRINTF = re.compile(r"\bstd::f?printf\(|\bstd::(cout|cerr)\b")
NOT_TEXT = (".png", ".bin", ".kpack", ".artifact", ".zst")


def check(tree):
    if not tree.exists("LICENSE"):
        yield "LICENSE", 1, "the licence file is missing"
    elif "Apache License" not in tree.text("LICENSE"):
        yield "LICENSE", 1, "must hold the Apache License 2.0"
    for path in tree.files():
        if path == HERE or path.endswith(NOT_TEXT):
            continue
        for number, line in tree.lines(path):
            for pattern, fault in BANNED:
                match = pattern.search(line)
                if match:
                    yield path, number, f"'{match.group(0)}' {fault}"
            if path.startswith("cli/") and path not in PRINTS_ITSELF and PRINTF.search(line):
                yield path, number, "prints past print() and tell() of cli/session.h, which guard the terminal"
            if path.endswith((".h", ".cc", ".cu", ".cuh", ".py", ".md", ".cmake", ".txt", ".sh")) and line.endswith("\r"):
                yield path, number, "ends with a carriage return"


EXAMPLE = {
    "base/a.cc": "// TODO: later\n// see /home/me/notes\n// $HOME/kiln and build/work/x are fine, mkstemp XXXXXX too\n",
    "docs/b.md": "A stub.\nstubs are a folder of the toolkit, the stub library is in it\nfrom pypi.org\n",
    "docs/c.md": "one\r\n",
    "cli/a.cc": 'std::printf("%s", name);\nprint("%s", name);\n',
}
EXPECTED = [
    "LICENSE:1: the licence file is missing",
    "base/a.cc:1: 'TODO' marks unfinished work: finish it, or open an issue",
    "base/a.cc:2: '/home/m' names a path of one machine",
    "cli/a.cc:1: prints past print() and tell() of cli/session.h, which guard the terminal",
    "docs/b.md:1: 'stub' speaks of a stub: the tree holds only what works",
    "docs/b.md:3: 'pypi.org' names a package registry's host",
    "docs/c.md:1: ends with a carriage return",
]
