"""bench/report.py and bench/compare.py on four workloads of a real run on an H200, and on changed copies of it."""
import contextlib
import copy
import importlib.util
import io
import json
import os
import shutil
import sys
import types
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "../../bench")
FIXED = os.path.join(HERE, "four_norms.json")
sys.path.insert(0, BENCH)
import compare  # noqa: E402
import contract  # noqa: E402
import report  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


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


class ReportTest(ResultsTestCase):
    def report(self, document, *more):
        out = os.path.join(self.folder, "page.md")
        done = self.run_main(report, self.write("in.json", document), "--out", out, *(more or ["--no-plots"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            return file.read()

    def row(self, page, name):
        lines = [line for line in page.split("\n") if line.startswith(f"| {name}")]
        self.assertEqual(len(lines), 1, page)
        return [cell.strip() for cell in lines[0].strip("|").split("|")]

    def test_provenance_is_there_and_no_folder_of_a_machine(self):
        self.document["command"] = "python3 /some/where/peers.py --json=/else/where/norm.json"
        page = self.report(self.document)
        for text in ["2026-11-29", "NVIDIA H200", "580.159.04", "toolkit: 13.0", "2bc7ee5",
                     "    python3 peers.py --json=norm.json\n"]:
            self.assertIn(text, page)

    def test_ratios_floor_and_goal(self):
        page = self.report(self.document)
        # 10.14 us by Kiln; 33.56 MB at 4.266 TB/s; liger's 10.98 us; the goal of 10.8 us
        row = self.row(page, "RMSNormFwdOp 2048x4096 bfloat16 +weight")
        self.assertEqual(row[1], "**10.14**")
        self.assertEqual(row[8], "7.87")
        self.assertEqual(row[-3:], ["0.78", "1.08 liger", "1.06"])

    def test_a_copy_that_moved_less_is_scaled(self):
        row = self.row(self.report(self.document), "RMSNormFwdOp 32768x65536")
        self.assertEqual(row[9], "2,014")  # measured on half of the bytes: 1,007 us

    def test_misses_are_said(self):
        page = self.report(self.document)
        self.assertIn("behind in 1, within noise in 0, of 4", page)
        self.assertIn("met in 2 of 3", page)
        misses = page[page.index("### Misses"):]
        self.assertIn("BatchNormFwdOp 32x64 float16 training +running_mean +running_var +weight +bias: 4.58 us, "
                      "torch.compile 1.95 us (134 % slower)", misses)
        self.assertIn("goal 1.8 us (154 % over)", misses)
        self.assertNotIn("RMSNormFwdOp 2048x4096", misses)

    def test_a_peer_with_another_result_is_marked_and_not_the_best(self):
        workload = next(w for w in self.document["workloads"] if w["name"].startswith("BatchNormFwdOp"))
        next(c for c in workload["contenders"] if c["name"] == "torch.compile")["difference_from_kiln"] = 0.5
        page = self.report(self.document)
        self.assertIn("1.95≠", page)
        self.assertIn("behind in 0", page)

    def test_what_has_no_figure_is_named(self):
        page = self.report(self.document)
        self.assertIn("- flashinfer, 1 workload: NotImplementedError: has no such op", page)

    def test_results_without_a_device_make_a_page(self):
        host = {**self.document, "machine": {"host": "a processor"}, "workloads": [
            {"name": "host path: find_entry", "family": "host path", "contenders": [
                {"name": "kiln", "clock": "processor",
                 "us": {"median": 0.0128, "p10": 0.0127, "p90": 0.013, "count": 7}}]}]}
        del host["floor"]
        page = self.report(host)
        self.assertIn("| find_entry | **0.0128** | 0.0127–0.0130 |", page)
        self.assertIn("- timed by: processor", page)
        self.assertIn("a processor", page)

    def product(self, **more):
        def contender(name, us):
            return {"name": name, "clock": "cupti", "us": {"median": us, "p10": us, "p90": us, "count": 9}}
        return {"name": "GemmFwdOp 8x4,8x4 float16", "family": "gemm", "op": "GemmFwdOp", "bytes": 1e6, "flops": 1e12,
                "contenders": [contender("kiln", 4000), contender("cublaslt", 1000), contender("triton", 2000),
                               {"name": "torch.compile", "unavailable": "as torch"}], **more}

    def test_the_floor_of_products_is_the_fastest_one(self):
        self.document["workloads"] = [self.product(), self.product(name="half", flops=5e11)]
        page = self.report(self.document)
        self.assertIn("fastest product: 1000 TFLOP/s", page)
        self.assertIn("| GemmFwdOp 8x4,8x4 float16 | **4,000** | 4,000–4,000 | 1,000 | 2,000 | 1,000 | 0.25 | "
                      "0.25 cublaslt **miss** |", page)
        self.assertIn("| half | **4,000** | 4,000–4,000 | 1,000 | 2,000 | 500.0 |", page)
        self.assertIn("cublaslt 1,000 us (4.0 times as long)", page)
        self.assertIn("- torch.compile, 2 workloads: as torch", page)

    def test_the_floor_of_host_times_is_the_launch_and_no_peer(self):
        self.document["workloads"] = [self.product(name="host time: norm", family="host time")]
        row = self.document["workloads"][0]
        del row["bytes"], row["flops"]
        row["contenders"][1]["name"] = "driver launch alone"
        page = self.report(self.document)
        self.assertIn("| norm | **4,000** | 4,000–4,000 | 2,000 | 1,000 | 0.25 | 0.50 triton **miss** |", page)

    def test_latencies_and_counts_have_tables(self):
        kiln = {"name": "kiln", "clock": "wall", "us": {"median": 200, "p10": 100, "p90": 300, "count": 9},
                "percentiles_us": [[0.5, 200], [0.99, 5000], [1, 70000]], "beside": {"ready, s": 1.5, "compiled": 20}}
        self.document["workloads"] = [{"name": "serving: pack", "family": "serving", "contenders": [kiln]}]
        self.document["instructions"] = {"whole_call": 981}
        page = self.report(self.document)
        self.assertIn("| state | p50 | p99 | max | ready, s | compiled |", page)
        self.assertIn("| pack | 0.20 | 5.00 | 70.00 | 1.5 | 20 |", page)
        self.assertIn("| whole_call | 981 |", page)

    def test_peers_that_are_not_there_and_what_was_not_run_are_named(self):
        self.document["peers"]["fla"] = "unavailable: ModuleNotFoundError: No module named 'fla'"
        self.document["not_run"] = [{"name": "a", "reason": "deadline"}, {"name": "b", "reason": "deadline"}]
        page = self.report(self.document)
        self.assertIn("- fla: unavailable: ModuleNotFoundError", page)
        self.assertIn("- not run: a, b: deadline", page)

    def test_bad_input_is_refused_and_named(self):
        for change, text in [({"format": "x"}, '"format" must be'), ({"version": 2}, '"version" must be 1'),
                             ({"machine": None}, '"machine" must be there'), ({"workloads": []}, "must hold a workload"),
                             ({"workloads": [{"name": "a", "family": "f", "contenders": [{"name": "kiln"}]}]},
                              'must hold "us"'),
                             ({"workloads": [{"name": "a", "family": "f", "contenders": [
                                 {"name": "kiln", "clock": "c", "us": {"median": 3, "p10": 4, "p90": 5}}]}]},
                              "p10 <= median <= p90")]:
            done = self.run_main(report, self.write("in.json", {**self.document, **change}), "--out",
                                   os.path.join(self.folder, "page.md"))
            self.assertEqual(done.returncode, 2, change)
            self.assertIn(text, done.stderr)
            self.assertIn("in.json", done.stderr)
        self.assertIn("must be JSON", self.run_main(compare, self.write("a", "{"), FIXED).stderr)
        self.assertIn("can be read", self.run_main(compare, os.path.join(self.folder, "no"), FIXED).stderr)

    @unittest.skipUnless(HAS_MATPLOTLIB, "plots need Matplotlib")
    def test_plots_are_the_same_each_time_and_say_where_they_are_from(self):
        with_plots = ["--title", "norm"]
        page, first = self.report(self.document, *with_plots), {}
        for name in ("page-norm-roofline.svg", "page-norm-ratios.svg"):
            self.assertIn(f"]({name})", page)
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                first[name] = file.read()
            for text in ("<svg", "NVIDIA H200", "driver 580.159.04", "CUDA 13.0", "commit 2bc7ee5", "peers.py", "floor"):
                self.assertIn(text, first[name])
        self.report(self.document, *with_plots)
        for name, text in first.items():
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)


class ContractTest(ResultsTestCase):
    def test_the_table_is_put_into_the_page_and_says_what_misses(self):
        def timed(name, family, **us):
            return {"name": f"{family}: {name}", "family": family, "contenders": [
                {"name": c.replace("_", " "), "clock": "wall", "us": {"median": v, "p10": v, "p90": v, "count": 9}}
                for c, v in us.items()]}
        self.document["instructions"] = {"find_entry": 298}
        self.document["workloads"] += [
            timed("find_entry/threads:1", "host path", kiln=0.02), timed("find_entry/threads:16", "host path", kiln=0.06),
            timed("a", "first call", kiln=120e3, nvrtc=100e3), timed("b", "warm scaling", kiln=100, nvrtc_processes=80)]
        page = self.write("page.md", "before\n<!-- contract -->\nwas here\n<!-- end of contract -->\nafter\n")
        done = self.run_main(contract, self.write("in.json", self.document), "--in", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("before\n<!-- contract -->\n| path |") and text.endswith("\nafter\n"), text)
        for line in ("| hit: finding the entry | 50 ns, flat to 16 threads | 20.0 ns, 60.0 ns at 16 threads, 298 instructions |"
                     "  | 1.20 of the bound | 20 % over; not flat: 3.0 times at 16 threads |",
                     "| 120 ms | bare NVRTC, 100 ms | 0.83 | 20 % beyond; 20 ms beyond |", "| 0.80 to 0.80 | b: 0.80 |",
                     "behind the fastest peer in 1 of 4, over the goal in 1 of 3 |",
                     "| kernels: gemm | ahead of the framework, near the copy or product rate | not measured in these runs |"):
            self.assertIn(line, text)
        self.assertNotIn("was here", text)

    def test_a_page_without_the_marks_is_refused(self):
        done = self.run_main(contract, FIXED, "--in", self.write("page.md", "nothing\n"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("must hold <!-- contract -->", done.stderr)


class CompareTest(ResultsTestCase):
    def compare(self, *more):
        return self.run_main(compare, FIXED, self.write("after.json", self.document), *more)

    def test_a_run_against_itself_has_not_moved(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("0 slower, 0 faster", done.stdout)

    def test_slower_beyond_noise_fails_and_is_named(self):
        self.scale(self.kiln("RMSNormFwdOp 2048x4096"), 1.1)
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn("RMSNormFwdOp 2048x4096 bfloat16 +weight, kiln: 10.14 -> 11.16 us (+10.0 %)", done.stdout)
        self.assertEqual(self.compare("--threshold", "15").returncode, 0)
        self.assertEqual(self.compare("--contender", "torch").returncode, 0)

    def test_faster_is_said_and_is_no_fault(self):
        self.scale(self.kiln("RMSNormFwdOp 2048x4096"), 0.9)
        done = self.compare()
        self.assertEqual(done.returncode, 0)
        self.assertIn("0 slower, 1 faster", done.stdout)

    def test_what_the_spread_explains_has_not_moved(self):
        kiln = self.kiln("RMSNormFwdOp 2048x4096")
        kiln["us"].update(median=10.7, p10=8.0, p90=16.0, count=20)
        self.assertEqual(self.compare().returncode, 0)

    def test_more_instructions_fail_and_are_named(self):
        before = {**self.document, "instructions": {"whole_call": 1000, "find_entry": 300}}
        for after, status, text in (({"whole_call": 1020, "find_entry": 300}, 1, "whole_call: 1000 -> 1020 instructions"),
                                    ({"whole_call": 1005, "find_entry": 250}, 0, "find_entry: 300 -> 250 instructions")):
            done = self.run_main(compare, self.write("before.json", before),
                                 self.write("after.json", {**self.document, "instructions": after}))
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertIn(text, done.stdout)

    def test_what_is_lost_fails(self):
        lost = copy.deepcopy(self.document["workloads"].pop())
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{lost['name']}, kiln", done.stdout)

    def test_another_device_is_said_and_nothing_in_common_is_refused(self):
        self.document["machine"]["device"] = "another"
        self.assertIn("device: NVIDIA H200 before, another after", self.compare().stdout)
        self.document["workloads"] = []
        done = self.compare()
        self.assertEqual(done.returncode, 2)
        self.assertIn("must have a timing in common", done.stderr)


if __name__ == "__main__":
    unittest.main()
