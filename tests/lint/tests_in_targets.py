"""Every test source is named by a CMakeLists.txt of its folder or one above it: a test that no build runs is none."""
import os
import re


def folders_up(path):
    folder = os.path.dirname(path)
    while folder:
        yield folder
        folder = os.path.dirname(folder)


def check(tree):
    for path in tree.files(("_test.cc", "_test.py")):
        if not path.startswith("tests/"):
            yield path, 1, "a test belongs under tests/"
            continue
        named = False
        for folder in folders_up(path):
            cmake = f"{folder}/CMakeLists.txt"
            if tree.exists(cmake):
                code = re.sub(r"#.*", "", tree.text(cmake))
                name = re.escape(os.path.relpath(path, folder))
                named = named or re.search(rf"(?<![\w/]){name}(?![\w.])", code) is not None
                named = named or (folder == os.path.dirname(path) and "*_test.cc" in code)
        if not named:
            yield path, 1, "no CMakeLists.txt names this test, so nothing runs it"


EXAMPLE = {
    "tests/base/CMakeLists.txt": "kiln_test(base_tests SOURCES a_test.cc)  # not b_test.cc\n",
    "tests/base/a_test.cc": "", "tests/base/b_test.cc": "", "tests/base/aa_test.cc": "",
    "tests/cache/CMakeLists.txt": "file(GLOB s CONFIGURE_DEPENDS *_test.cc)\n",
    "tests/cache/c_test.cc": "", "base/d_test.cc": "",
}
EXPECTED = [
    "tests/base/aa_test.cc:1: no CMakeLists.txt names this test, so nothing runs it",
    "tests/base/b_test.cc:1: no CMakeLists.txt names this test, so nothing runs it",
    "base/d_test.cc:1: a test belongs under tests/",
]
