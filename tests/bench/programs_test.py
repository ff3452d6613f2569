"""`kiln bench` and gpu_bench where no device is needed. Usage: programs_test.py KILN GPU_BENCH"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

KILN, GPU_BENCH = sys.argv[1:3]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=250, check=False)


class ProgramsTest(unittest.TestCase):
    def test_list_names_the_programs(self):
        done = run(KILN, "bench", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("host_path", "first_call", "warm_scaling", "gpu_bench"):
            self.assertIn(name, done.stdout)

    def test_bad_filters_are_refused(self):
        for filter_, text in (("(", "must be a regular expression"), ("nothing_like_it", "must find one of host_path")):
            done = run(KILN, "bench", "--filter", filter_)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)

    def test_missing_programs_are_named_before_any_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(KILN, folder)
            done = run(alone, "bench")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("must be beside kiln", done.stderr)
            self.assertIn("host_path", done.stderr)

    @unittest.skipUnless(os.path.exists(GPU_BENCH), "gpu_bench is not built")
    def test_gpu_bench_lists_without_a_device(self):
        done = run(GPU_BENCH, "--family", "norm", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len([json.loads(line)["name"] for line in done.stdout.splitlines()]), 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
