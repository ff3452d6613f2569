import json
import os
import subprocess

import kiln_test_case
from kiln_test_case import CALL, KilnTestCase, changed, main


def lines(*calls):
    return "# calls\n\n" + "\n".join(json.dumps(call) for call in calls) + "\n"


class WarmTest(KilnTestCase):
    def check_sums(self, report):
        self.assertEqual(report["identities"], report["built"] + sum(report["hits"].values()))
        self.assertEqual(report["failed"], len(report["failures"]))
        self.assertEqual(report["missing"], 0)
        self.assertEqual(set(report["hits"]), {"memory", "disk", "layer", "remote"})
        self.assertGreater(report["seconds"], 0)

    def test_the_second_run_builds_nothing_and_says_so(self):
        calls = [changed("params.eps", eps) for eps in [1e-5, 1e-6, 1e-3]]
        file = self.write("calls with a space.jsonl", lines(*calls))
        first = self.ok("warm", "--calls", file, "--device", "cpu", "--jobs", "2")
        self.check_sums(first)
        self.assertEqual((first["calls"], first["identities"], first["built"]), (3, 3, 3))
        self.assertEqual(self.ok("cache", "stats")["entries"], 3)
        second = self.ok("warm", "--calls", file, "--device", "cpu")
        self.check_sums(second)
        self.assertEqual((second["built"], second["hits"]["disk"]), (0, 3))
        self.assertIn("nothing was built", self.kiln("warm", "--calls", file, "--device", "cpu").out)

    def test_calls_with_one_identity_are_built_once(self):
        calls = [changed("inputs.x.shape", [rows, 128]) for rows in [1, 2, 3, 4]]
        report = self.ok("warm", "--calls", self.write("calls", lines(*calls)), "--device", "cpu", "--jobs", "4")
        self.assertEqual((report["calls"], report["identities"], report["built"]), (4, 1, 1))
        self.check_sums(report)

    def test_calls_from_stdin_and_from_words(self):
        report = self.ok("warm", "--calls", "-", "--device", "cpu", stdin=lines(CALL))
        self.assertEqual(report["built"], 1)
        words = dict(CALL)
        del words["op"]
        report = self.ok("warm", "LayerNormFwdOp", words, CALL, "--device", "cpu")
        self.assertEqual((report["calls"], report["hits"]["disk"]), (2, 1))

    def test_what_was_warmed_is_what_a_run_needs(self):
        self.ok("warm", CALL, "--device", "cpu")
        self.assertEqual(self.ok("run", CALL, "--device", "cpu")["tier"], "disk")

    def test_failures_are_listed_and_the_rest_is_built(self):
        file = self.write("calls", lines(CALL, changed("params.eps", 1e-3)))
        name = self.ok("explain", CALL, "--device", "cpu")["plan"][0]["programs"][0]["source"]
        path = os.path.join(self.path("kernels"), name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file_of_kernel:
            file_of_kernel.write("#error on purpose\n")
        result = self.kiln("warm", "--calls", file, "--device", "cpu", "--json", env={"KILN_KERNEL_PATH": self.path("kernels")})
        self.assertEqual(result.code, 3)
        self.check_sums(result.json)
        self.assertEqual(result.json["failed"], 2)
        failure = result.json["failures"][0]
        self.assertIn("on purpose", failure["reason"])
        self.assertEqual(json.loads(failure["call"])["op"], "LayerNormFwdOp")
        self.assertIn("calls:3", failure["where"])

    def test_bad_files(self):
        warm = lambda fragment, file: self.refused(2, fragment, "warm", "--calls", file, "--device", "cpu")
        warm("nowhere", self.path("nowhere"))
        warm("must be a file that can be read", self.folder)
        warm("at least one call", self.write("empty", ""))
        warm("at least one call", self.write("comments", "# none\n\n"))
        warm("bad.jsonl:3: JSON: line 1, column", self.write("bad.jsonl", "# a\n" + json.dumps(CALL) + "\n{]\n"))
        warm("other.jsonl:1", self.write("other.jsonl", json.dumps(changed("op", "NoSuchOp"))))
        binary = self.path("binary")
        with open(binary, "wb") as file:
            file.write(bytes(range(256)) * 16)
        warm("binary:1", binary)

    def test_bad_arguments(self):
        self.refused(2, "got neither", "warm", "--arch", "90")
        self.refused(2, "got both", "warm", CALL, "--calls", "-", "--arch", "90", stdin="")
        self.refused(2, "--jobs", "warm", CALL, "--arch", "90", "--jobs=-1")
        self.refused(2, "--board, --arch or --device", "warm", CALL)

    def test_two_processes_at_once_build_each_key_once(self):
        file = self.write("calls", lines(*[changed("params.eps", eps) for eps in [1e-5, 1e-6]]))
        environment = dict(os.environ, KILN_CACHE_DIR=self.cache)
        command = [kiln_test_case.KILN, "warm", "--calls", file, "--device", "cpu", "--json"]
        processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(3)]
        for process in processes:
            out, _unused = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0)
            self.check_sums(json.loads(out))
        self.assertEqual(self.ok("cache", "stats")["entries"], 2)


class WarmBoardsTest(KilnTestCase):
    """CUDA kernels, compiled by NVRTC for devices that are not here."""

    def serves_cuda(self):
        rows = self.ok("ops", "LayerNormFwdOp")["ops"][0]["implementations"]
        return any("cuda" in row["devices"] for row in rows)

    def test_two_archs_without_a_device(self):
        self.assertTrue(self.serves_cuda(), "LayerNormFwdOp must have implementations for cuda")
        report = self.ok("warm", CALL, "--arch", "sm_80,sm_90a")
        self.assertEqual(report["boards"], ["a100", "h200"])
        self.assertEqual((report["calls"], report["built"], report["failed"]), (1, 2, 0))
        again = self.ok("warm", CALL, "--arch", "sm_80,sm_90a")
        self.assertEqual((again["built"], again["hits"]["disk"]), (0, 2))
        targets = {entry["target"] for entry in self.ok("cache", "list")["entries"]}
        self.assertEqual(len(targets), 2)


if __name__ == "__main__":
    main()
