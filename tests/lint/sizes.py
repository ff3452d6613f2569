"""File sizes: one file is one idea. An exception is a line `path: reason` in tests/lint/sizes_allowed.txt."""
LIMITS = {".cc": 400, ".h": 250}
ALLOWED = "tests/lint/sizes_allowed.txt"


def allowed(tree):
    rows = {}
    if tree.exists(ALLOWED):
        for number, line in tree.lines(ALLOWED):
            if line.strip() and not line.startswith("#"):
                path, _, reason = line.partition(":")
                rows[path.strip()] = (number, reason.strip())
    return rows


def check(tree):
    rows = allowed(tree)
    big = {}
    for path in tree.code():
        limit = next((n for suffix, n in LIMITS.items() if path.endswith(suffix)), None)
        count = tree.text(path).count("\n")
        if limit and count > limit:
            big[path] = (limit, count)
    for path, (limit, count) in sorted(big.items()):
        if path not in rows:
            yield path, limit + 1, f"at most {limit} lines, has {count}: split it, or give a reason in {ALLOWED}"
    for path, (number, reason) in rows.items():
        if not reason:
            yield ALLOWED, number, f"{path} has no reason"
        if path not in big:
            yield ALLOWED, number, f"{path} is within its limit (or gone): take the line out"


EXAMPLE = {
    "base/long.h": "\n" * 251, "base/long.cc": "\n" * 401, "base/fine.cc": "\n" * 400, "base/reason.cc": "\n" * 500,
    ALLOWED: "# comment\nbase/reason.cc: one table\nbase/fine.cc: once was long\n",
}
EXPECTED = [
    f"base/long.cc:401: at most 400 lines, has 401: split it, or give a reason in {ALLOWED}",
    f"base/long.h:251: at most 250 lines, has 251: split it, or give a reason in {ALLOWED}",
    f"{ALLOWED}:3: base/fine.cc is within its limit (or gone): take the line out",
]
