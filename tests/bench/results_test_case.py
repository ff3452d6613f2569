"""What tests of programs over results files share: four workloads of a real run on an H200, and changed copies of them."""
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FIXED = os.path.join(HERE, "four_norms.json")
sys.path.insert(0, os.path.join(HERE, "../../bench"))


class ResultsTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kiln bench test ")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with open(FIXED, encoding="utf-8") as file:
            self.document = json.load(file)

    def write(self, name, document):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(document if isinstance(document, str) else json.dumps(document))
        return path

    def run_main(self, module, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = module.main(words)
            except SystemExit as e:
                status = e.code
        return types.SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())

    def kiln(self, name):
        workload = next(w for w in self.document["workloads"] if w["name"].startswith(name))
        return next(c for c in workload["contenders"] if c["name"] == "kiln")

    def scale(self, contender, factor):
        contender["us"].update({k: contender["us"][k] * factor for k in ("median", "p10", "p90")})
        contender["pass_us"] = [v * factor for v in contender["pass_us"]]
