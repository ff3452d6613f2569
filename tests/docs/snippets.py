"""Every ```cpp and ```cmake block of the guides stands in a file that the tests build, white space aside.

The line before a block says where:  <!-- from PATH -->
"""
import pathlib
import re
import sys

MARK = re.compile(r"<!-- from (\S+) -->$")
FENCE = re.compile(r"\s*(?:```+|~~~+)\s*(\S*)")


def normal(text):
    return " ".join(text.split())


def blocks(page):
    """(line number, language, text, the line before) of each fenced block."""
    lines = page.split("\n")
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not FENCE.match(lines[end]):
            end += 1
        yield at + 1, fence.group(1).lower(), "\n".join(lines[at + 1:end]), lines[at - 1] if at else ""
        at = end + 1


def fault(root, text, before):
    mark = MARK.match(before.strip())
    if not mark:
        return "no <!-- from PATH --> right before it"
    path = mark.group(1)
    if not (root / path).is_file():
        return f"{path} is no file"
    if not text.strip() or normal(text) not in normal((root / path).read_text()):
        return f"does not stand in {path}"
    return None


def check(root, name, page):
    found = [(line, fault(root, text, before)) for line, language, text, before in blocks(page)
             if language in ("cpp", "c++", "cc", "cxx", "cuda", "cmake")]
    return len(found), [f"{name}:{line}: {what}" for line, what in found if what]


def self_test(root):
    good = "<!-- from CMakeLists.txt -->\n```cmake\nproject(kiln   VERSION\n```\n"
    bad = [good.replace("kiln ", "kin "), good.replace("CMakeLists", "None"), good.split("\n", 1)[1],
           good.replace("```cmake", "\n```cmake")]
    assert check(root, "good", good) == (1, []), check(root, "good", good)
    for page in bad:
        count, faults = check(root, "bad", page)
        assert count == 1 and len(faults) == 1, page


def main():
    root = pathlib.Path(sys.argv[1])
    self_test(root)
    total, faults = 0, []
    for path in sorted((root / "docs").rglob("adding_*.md")):
        count, found = check(root, str(path.relative_to(root)), path.read_text())
        total += count
        faults += found if count else [f"{path.relative_to(root)}: has no snippet"]
    if total < 10:
        faults.append(f"only {total} snippets were found: the search is broken")
    print("\n".join(faults) or f"{total} snippets stand in files that are built")
    return 1 if faults else 0


sys.exit(main())
