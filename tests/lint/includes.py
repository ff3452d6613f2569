"""Who may include whom: the table of docs/architecture.md, on every #include line."""
import os
import re

CORE = {
    "base": {"base"},
    "cache": {"base", "cache"},
    "jit": {"base", "cache", "jit"},
    "runtime": {"base", "cache", "jit", "runtime"},
    "cli": {"base", "cache", "jit", "runtime", "cli"},
    "tests": {"base", "cache", "jit", "runtime", "cli", "kernel_sources", "backends", "tests"},
    "bench": {"base", "cache", "jit", "runtime", "cli", "kernel_sources", "backends", "bench", "tests"},
}
OUTSIDERS = ("kernel_sources", "backends", "examples")  # public headers and their own folder only
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
STANDARD = re.compile(r"^[a-z_0-9]+$")
SYSTEM = re.compile(r"^((sys|linux|net|arpa|netinet)/.*|(dlfcn|elf|unistd|fcntl|pthread|sched|signal|spawn|poll|cpuid|"
                    r"immintrin|xmmintrin|stdint|stddef|stdlib|string|math|errno|limits|link|time)\.h)$")
DEVICE = re.compile(r"^(cuda_(fp16|bf16|fp8|fp6|fp4)\.h|cuda_pipeline.*|mma\.h|cooperative_groups.*|cuda/.*)$")
# options.h holds only macros: with them a plugin states which Abseil it was built with.
PUBLIC_ABSEIL = {"absl/status/status.h", "absl/status/statusor.h", "absl/base/options.h"}


def is_public(path):
    return "include/kiln/" in path


def own_folder(path):
    """The folder whose files an outsider may include: the family, the backend, the example."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def public_fault(quoted, angled):
    if quoted:
        return f'a public header may not include "{quoted}": only <kiln/...>, the standard library and absl::Status'
    if angled.startswith("kiln/") or STANDARD.match(angled) or angled in PUBLIC_ABSEIL:
        return None
    return f"a public header may not include <{angled}>: only <kiln/...>, the standard library and absl::Status"


def outsider_fault(tree, path, quoted, angled):
    top = path.split("/")[0]
    if quoted:
        own = own_folder(path)
        candidates = [os.path.join(os.path.dirname(path), quoted), os.path.join(own, quoted)]
        if any(tree.exists(c) and os.path.normpath(c).startswith(own + "/") for c in candidates):
            return None
        # Device code names an embedded header by its whole path.
        if path.endswith((".cu", ".cuh")) and quoted.startswith(("kernel_sources/device/", own + "/")):
            return None
        return f'{top} may not include "{quoted}": only <kiln/...> and its own folder'
    if angled.startswith(("kiln/", "absl/")) or STANDARD.match(angled) or SYSTEM.match(angled):
        return None
    if path.endswith((".cu", ".cuh")) and DEVICE.match(angled):
        return None
    if path.startswith("examples/") and path.endswith("_tests.cc") and angled == "gtest/gtest.h":
        return None
    return f"{top} may not include <{angled}>: only <kiln/...>, the standard library and Abseil"


def core_fault(tree, path, quoted):
    top = path.split("/")[0]
    if not quoted or top not in CORE:
        return None
    other = quoted.split("/")[0]
    if other in CORE or other in OUTSIDERS or other == "examples":
        if other not in CORE[top]:
            return f"{top} may not include {other}"
        return None
    return f'"{quoted}" is no path from the root of the tree'


def check(tree):
    for path in tree.code():
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, angled = match.groups()
            if is_public(path):
                fault = public_fault(quoted, angled)
            elif path.split("/")[0] in OUTSIDERS:
                fault = outsider_fault(tree, path, quoted, angled)
            else:
                fault = core_fault(tree, path, quoted)
            if fault:
                yield path, number, fault


EXAMPLE = {
    "cache/t.cc": '#include "jit/engine.h"\n#include "base/log.h"\n#include "log.h"\n#include <zstd.h>\n',
    "base/t.cc": '#include "cache/store.h"\n',
    "cli/main.cc": '#include "runtime/x.h"\n#include "kernel_sources/norm/layer_norm.h"\n#include <CLI/CLI.hpp>\n',
    "tests/cache/t_test.cc": '#include "cache/store.h"\n#include "tests/support/temp_dir.h"\n#include "bench/b.h"\n',
    "runtime/include/kiln/op.h": '#include <kiln/dtype.h>\n#include <vector>\n#include <absl/status/status.h>\n'
                                 '#include <absl/time/time.h>\n#include "runtime/x.h"\n',
    "kernel_sources/norm/a.h": "",
    "kernel_sources/norm/a.cc": '#include "a.h"\n#include <kiln/op.h>\n#include <cmath>\n#include "runtime/x.h"\n'
                                '#include <cuda.h>\n#include "../other/b.h"\n',
    "kernel_sources/other/b.h": "",
    "kernel_sources/norm/a.cu": '#include <cuda_fp16.h>\n#include "kernel_sources/device/vector.cuh"\n#include <curand.h>\n',
    "backends/cpu/c.cc": '#include <dlfcn.h>\n#include <nlohmann/json.hpp>\n',
}
EXPECTED = [
    "cache/t.cc:1: cache may not include jit",
    'cache/t.cc:3: "log.h" is no path from the root of the tree',
    "base/t.cc:1: base may not include cache",
    "cli/main.cc:2: cli may not include kernel_sources",
    "tests/cache/t_test.cc:3: tests may not include bench",
    "runtime/include/kiln/op.h:4: a public header may not include <absl/time/time.h>: "
    "only <kiln/...>, the standard library and absl::Status",
    'runtime/include/kiln/op.h:5: a public header may not include "runtime/x.h": '
    "only <kiln/...>, the standard library and absl::Status",
    'kernel_sources/norm/a.cc:4: kernel_sources may not include "runtime/x.h": only <kiln/...> and its own folder',
    "kernel_sources/norm/a.cc:5: kernel_sources may not include <cuda.h>: "
    "only <kiln/...>, the standard library and Abseil",
    'kernel_sources/norm/a.cc:6: kernel_sources may not include "../other/b.h": only <kiln/...> and its own folder',
    "kernel_sources/norm/a.cu:3: kernel_sources may not include <curand.h>: "
    "only <kiln/...>, the standard library and Abseil",
    "backends/cpu/c.cc:2: backends may not include <nlohmann/json.hpp>: "
    "only <kiln/...>, the standard library and Abseil",
]
