"""The guide's implementation: chosen where it serves, refused where not, and its program compiles."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

KILN, PLUGIN = sys.argv[1:3]


def call(k):
    matrix = lambda rows: {"dtype": "float16", "shape": [rows, k]}
    return json.dumps({"op": "GemmFwdOp", "inputs": {"a": matrix(4), "b": matrix(6)}})


class ExampleKernel(unittest.TestCase):
    def kiln(self, *words):
        folder = tempfile.TemporaryDirectory(prefix="kiln example ")
        self.addCleanup(folder.cleanup)
        env = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        env.update(KILN_BACKEND_PATH=PLUGIN, KILN_CACHE_DIR=os.path.join(folder.name, "cache"))
        done = subprocess.run([KILN, *words, "--json"], env=env, capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def test_selection(self):
        for k, chosen in [(5, "gemm_short"), (7, "gemm_short"), (8, "gemm_vectorized"), (128, "gemm_vectorized")]:
            plan = self.kiln("explain", call(k), "--arch", "90")["plan"][0]
            self.assertEqual(plan["chosen"], chosen, k)
            if k == 8:
                self.assertIn("serves k below 8, got 8", json.dumps(plan))

    def test_its_program_compiles(self):
        for arch in ("80", "90"):
            report = self.kiln("warm", call(5), "--arch", arch)
            self.assertEqual((report["compiled"], report["failed"]), (1, 0), report)


unittest.main(argv=sys.argv[:1])
