"""Names that clang-tidy cannot judge: files, interfaces, implementation keys, test suites and cases."""
import os
import re

FILE = re.compile(r"^[a-z0-9][a-z0-9_]*(\.[a-z0-9]+)*$")
INTERFACE = re.compile(r"^\s*(?:class|struct)\s+(?:KILN_EXPORT\s+)?(\w*Interface)\b(?!\s*;)")
GOOD_INTERFACE = re.compile(r"^[A-Z]\w*(Fwd|Bwd)Interface$")
# r.add<LayerNormFwdOp, LayerNormKernel>("layer_norm"), also broken over two lines
REGISTRATION = re.compile(r"\.add<\s*[\w:]+\s*,\s*[\w:]+\s*>\s*\(\s*\"([^\"]*)\"")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
OUTSIDERS = ("kernel_sources/", "backends/", "examples/")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def key_faults(tree, path):
    text = tree.text(path)
    folder = os.path.dirname(path)
    for match in REGISTRATION.finditer(text):
        key = match.group(1)
        if not re.match(r"^[a-z][a-z0-9_]*$", key):
            yield path, line_of(text, match.start()), f"an implementation key is snake_case, got '{key}'"
        elif not tree.exists(f"{folder}/{key}.h"):
            yield (path, line_of(text, match.start()),
                   f"an implementation key is its file's stem: there is no {folder}/{key}.h")


def test_faults(tree, path):
    text = tree.text(path)
    for match in TEST.finditer(text):
        suite, case = match.groups()
        if not re.match(r"^[A-Z][A-Za-z0-9]*Test$", suite):
            yield path, line_of(text, match.start()), f"a test suite is named <What>Test, got '{suite}'"
        if not re.match(r"^[A-Z][A-Za-z0-9]*$", case):
            yield path, line_of(text, match.start()), f"a test case is a sentence without underscores, got '{case}'"


def check(tree):
    for path in tree.files((".h", ".cc", ".cu", ".cuh", ".inc", ".py")):
        if not FILE.match(os.path.basename(path)):
            yield path, 1, "a file's name is snake_case"
    for path in tree.code():
        if path.startswith(OUTSIDERS):
            for number, line in tree.lines(path):
                match = INTERFACE.match(line)
                if match and not GOOD_INTERFACE.match(match.group(1)):
                    yield path, number, f"an interface is named {{Name}}{{Fwd|Bwd}}Interface, got '{match.group(1)}'"
        if path.startswith(("kernel_sources/", "backends/")) and path.endswith(".cc"):
            yield from key_faults(tree, path)
        if path.startswith("tests/") and path.endswith(".cc"):
            yield from test_faults(tree, path)


EXAMPLE = {
    "base/BadName.cc": "\n",
    "kernel_sources/norm/layer_norm.h": "class LayerNormKernel : public LayerNormFwdInterface {};\n"
                                        "struct LayerNormFwdInterface : KernelInterface<LayerNormCall> {\n};\n"
                                        "struct NormTrainInterface {};\nclass SomeInterface;\n",
    "kernel_sources/norm/family.cc": 'r.add<LayerNormFwdOp, LayerNormKernel>("layer_norm");\n'
                                     'r.add<LayerNormFwdOp,\n      LayerNormWideKernel>(\n    "layer_norm_wide");\n'
                                     'r.add<LayerNormFwdOp, LayerNormKernel>("LayerNorm");\n',
    "tests/base/a_test.cc": "TEST(StatusTest, Works) {}\nTEST(Status, Works) {}\nTEST_F(StatusTest, it_works) {}\n",
}
EXPECTED = [
    "base/BadName.cc:1: a file's name is snake_case",
    "kernel_sources/norm/layer_norm.h:4: an interface is named {Name}{Fwd|Bwd}Interface, got 'NormTrainInterface'",
    "kernel_sources/norm/family.cc:2: an implementation key is its file's stem: "
    "there is no kernel_sources/norm/layer_norm_wide.h",
    "kernel_sources/norm/family.cc:5: an implementation key is snake_case, got 'LayerNorm'",
    "tests/base/a_test.cc:2: a test suite is named <What>Test, got 'Status'",
    "tests/base/a_test.cc:3: a test case is a sentence without underscores, got 'it_works'",
]
