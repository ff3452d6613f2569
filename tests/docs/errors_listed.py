"""Every fragment of runtime/messages.h and every static_assert of the public headers stands in docs/errors.md."""
import pathlib
import re
import sys

STRING = r'"((?:[^"\\]|\\.)*)"'


def fragments(root):
    for match in re.finditer(r"constexpr char \w+\[\]\s*=\s*" + STRING, (root / "runtime/messages.h").read_text()):
        yield "runtime/messages.h", match.group(1)
    for folder in ("runtime", "jit", "base", "cache"):
        for header in sorted((root / folder / "include").rglob("*.h")):
            text = header.read_text()
            for match in re.finditer(r"static_assert\([^;]*?,\s*((?:" + STRING + r"\s*)+)\);", text):
                yield str(header.relative_to(root)), "".join(re.findall(STRING, match.group(1)))


def listed(fragment, page):
    # The page may leave out what follows the first colon, and the possessive of a name that varies.
    return any(part in page for part in (fragment, fragment.split(":")[0], fragment.split(",")[0]))


def main():
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/errors.md").read_text()
    found = list(fragments(root))
    missing = [f"{where}: docs/errors.md does not list: {text}" for where, text in found if not listed(text, page)]
    if len(found) < 30:
        missing.append(f"only {len(found)} fragments were found: the search is broken")
    if listed("a sentence that is nowhere", page):
        missing.append("everything seems to be listed: the comparison is broken")
    print("\n".join(missing) or f"{len(found)} fragments are listed")
    return 1 if missing else 0


sys.exit(main())
