"""Include guards: KILN_<PATH>_H_, where a public header's path begins after include/kiln/."""
import re


def guard_of(path):
    stem = path.split("include/kiln/", 1)[1] if "include/kiln/" in path else path
    return "KILN_" + re.sub(r"[^A-Za-z0-9]", "_", stem).upper() + "_"


def check(tree):
    for path in tree.code():
        if not path.endswith((".h", ".cuh")):
            continue
        code = [(n, line) for n, line in tree.lines(path) if line.strip()]
        directives = [(n, line) for n, line in code if line.startswith("#")]
        guard = guard_of(path)
        if path.endswith(".cuh") and any(line.strip() == "#pragma once" for _, line in directives):
            continue  # device headers are given to NVRTC by name; both forms work there
        want = [f"#ifndef {guard}", f"#define {guard}"]
        for position, text in enumerate(want):
            number, line = directives[position] if len(directives) > position else (1, "")
            if line.strip() != text:
                yield path, number, f"the include guard must be '{text}', got '{line.strip()}'"
                break
        else:
            if code[-1][1].strip() != f"#endif  // {guard}":
                yield path, code[-1][0], f"the last line must be '#endif  // {guard}'"


EXAMPLE = {
    "base/good.h": "#ifndef KILN_BASE_GOOD_H_\n#define KILN_BASE_GOOD_H_\n#endif  // KILN_BASE_GOOD_H_\n",
    "k/norm/include/kiln/ops/n.h": "// Text.\n#ifndef KILN_OPS_N_H_\n#define KILN_OPS_N_H_\n#endif  // KILN_OPS_N_H_\n",
    "device/good.cuh": "#pragma once\n",
    "base/bad.h": "#ifndef BAD_H\n#define BAD_H\n#endif\n",
    "base/end.h": "#ifndef KILN_BASE_END_H_\n#define KILN_BASE_END_H_\n#endif\n",
    "base/none.h": "int x();\n",
}
EXPECTED = [
    "base/bad.h:1: the include guard must be '#ifndef KILN_BASE_BAD_H_', got '#ifndef BAD_H'",
    "base/end.h:3: the last line must be '#endif  // KILN_BASE_END_H_'",
    "base/none.h:1: the include guard must be '#ifndef KILN_BASE_NONE_H_', got ''",
]
