"""What the benchmark programs say of wrong arguments and of programs that fail. Usage: arguments_test.py KILN"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

KILN = os.path.abspath(sys.argv[1])
BIN = os.path.dirname(KILN)
BENCH = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
COUNT = os.path.join(BENCH, "runtime/count_instructions")
COMPILE_TIMES, WARM_BUILDS, PEERS = (os.path.join(BENCH, name) for name in (
    "jit/compile_times.py", "cli/warm_builds.py", "peers/peers.py"))


def built(name):
    return os.path.join(BIN, name)


def needs(name):
    return unittest.skipUnless(os.path.exists(built(name)), f"{name} is not built")


class ArgumentsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kiln bench test ")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def refused(self, status, text, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=250, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not there")
    def test_count_instructions_prints_no_count_of_what_did_not_run(self):
        path = os.path.join(self.folder, "counts.json")
        for status, text, words in (
                (2, "HOST_PATH: must be a program: got ./missing", ["missing"]),
                (2, "HOST_PATH: must be a program: got /missing", ["--json", path, "/missing"]),
                (1, "/bin/false under valgrind: must succeed: ended with 1", ["/bin/false"]),
                (1, "/bin/true: must run the benchmark count_bare_launch", ["--json", path, "/bin/true"]),
                (2, "--json: must be followed by a file", ["/bin/true", "--json"]),
                (2, "--json: must be a file that can be written: got /no/counts", ["--json", "/no/counts", "/bin/true"]),
                (2, "must be given [--json FILE] [HOST_PATH]: got --what", ["--what"]),
                (2, "must be given once: got /bin/true and /bin/false", ["/bin/true", "/bin/false"])):
            self.assertEqual(self.refused(status, text, COUNT, *words).stdout, "")
        self.assertFalse(os.path.exists(path))

    @needs("warm_scaling")
    def test_warm_scaling_refuses_what_is_no_number_of_programs(self):
        for text, words in (('PROGRAMS: must be a whole number, 1 or more: got "x"', ["x"]), ('got "0"', ["0"]),
                            ('WIDTH: must be a whole number, 1 or more: got "0"', ["4", "0"]), ('got "2x"', ["4", "2x"]),
                            ("--json: must be followed by a file", ["4", "--json"]),
                            ("must be a file that can be written: got /no/a", ["--json", "/no/a"])):
            self.assertEqual(self.refused(2, text, built("warm_scaling"), *words).stdout, "")

    @needs("first_call")
    def test_first_call_says_what_it_got(self):
        for text, words in (('ROUNDS: must be a whole number, 1 or more: got "x"', ["x"]), ('got "0"', ["0"]),
                            ('ROUNDS: must be given once: got "1" and "2"', ["1", "2"]),
                            ("must be a file that can be written: got /no/a", ["1", "--json", "/no/a"])):
            self.refused(2, text, built("first_call"), *words)

    @needs("gpu_bench")
    def test_gpu_bench_says_what_is_wrong_before_it_asks_for_a_device(self):
        for text, words in (('got "nope"', ["--family", "nope"]), ('got "nope"', ["--filter", "nope"]),
                            ("--configs: must be a regular expression", ["--configs", "("])):
            self.refused(2, text, built("gpu_bench"), *words)

    @needs("libkiln_bench.so")
    def test_peers_refuses_a_filter_as_gpu_bench_does(self):
        peers = [sys.executable, "-B", PEERS, "--library", built("libkiln_bench.so"), "--list", "--filter"]
        self.refused(2, "must be a regular expression: got '('", *peers, "(")
        self.refused(2, "must match a workload: got 'nothing_like_it'", *peers, "nothing_like_it")

    def test_bundle_makes_no_folder_of_what_is_no_build(self):
        bundle, out = os.path.join(BENCH, "peers/bundle"), os.path.join(self.folder, "out")
        self.refused(2, "BUILD_DIR and FOLDER must be given: got 0", bundle)
        self.refused(2, "got 1", bundle, self.folder)
        self.refused(2, f"BUILD_DIR: must be a build with bin/kiln: got {self.folder}", bundle, self.folder, out)
        self.assertFalse(os.path.exists(out))

    def test_compile_times_says_what_kiln_said_before_work_begins(self):
        with_kiln = [sys.executable, "-B", COMPILE_TIMES, "--kiln", KILN]
        call = self.file("calls.jsonl", '{"op":"LayerNormFwdOp","params":{"normalized_shape":[4096]},"inputs":{"x":{'
                                        '"dtype":"float16","shape":[8192,4096]},"weight":{"dtype":"float16","shape":[4096]}}}\n')
        for status, text, words in (
                (2, "must be a program that is built: got '/missing'", ["--kiln", "/missing"]),
                (2, "--rounds: must be a whole number above 0: got '0'", ["--rounds", "0"]),
                (1, 'no board or arch is called "999"', ["--arch", "999", call]),
                (1, "/missing.jsonl: must be a file that can be read", [call, "/missing.jsonl"]),
                (1, "must hold at least one call", [self.file("empty.jsonl", "")]),
                (1, "broken.jsonl:1: ", [self.file("broken.jsonl", "broken")])):
            self.assertEqual(self.refused(status, text, *with_kiln, *words).stdout, "")
        done = subprocess.run([*with_kiln, "--rounds", "1", "--arch", "sm_90", call], capture_output=True, text=True,
                              timeout=250, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("| `(an empty kernel)` | 1 |", "| `norm/"):
            self.assertIn(text, done.stdout)

    def test_warm_builds_says_what_is_wrong(self):
        script = [sys.executable, "-B", WARM_BUILDS]
        broken = self.file("broken", "#!/bin/sh\necho it broke >&2\nexit 5\n", stat.S_IRWXU)
        for status, text, words in ((2, "arguments are required: KILN\n", []), (2, "got '/missing'", ["/missing"]),
                                    (2, "BUILDS: must be a whole number above 0: got 'x'", [KILN, "x"]),
                                    (2, "WIDTH: must be a whole number above 0: got '0'", [KILN, "1", "0"]),
                                    (1, "ended with 5: it broke", [broken, "1", "1"]),
                                    (1, "must write JSON: it said nothing", ["/bin/true", "1", "1"]),
                                    (1, "could not be started", [self.file("text", "no program", stat.S_IRWXU), "1", "1"])):
            self.refused(status, text, *script, *words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
