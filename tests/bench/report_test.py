"""bench/report.py, and what bench/results_file.py refuses to all programs, on four workloads of a real run on an H200."""
import copy
import importlib.util
import os
import unittest

from results_test_case import FIXED, ResultsTestCase
import compare
import contract
import report

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


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

    def test_reasons_are_cut_at_a_word_and_name_the_program_once(self):
        words = "must be there: " + "a reason of words " * 20
        self.document["not_run"] = [{"name": "peers.py", "reason": "log\npeers.py: " + words},
                                    {"name": "other", "reason": "x" * 300}]
        lines = self.report(self.document).split("\n")
        (line,) = [one for one in lines if one.startswith("- not run: peers.py")]
        reason = line.removeprefix("- not run: peers.py: ")
        self.assertTrue(reason.endswith(" …") and words.startswith(reason[:-1]), line)
        self.assertTrue(reason.startswith("must be there") and 180 < len(reason) <= 202, line)
        self.assertIn("- not run: other: " + "x" * 200 + " …", lines)

    def test_a_workload_that_kiln_has_no_figure_for_is_named(self):
        for w in self.document["workloads"][:1]:
            for c in w["contenders"]:
                if c["name"] == "kiln":
                    del c["us"]
                    c["error"] = "it broke"
        self.assertIn("- kiln, 1 workload: it broke", self.report(self.document))

    def test_counts_alone_make_a_page(self):
        alone = {**self.document, "command": "kiln bench --filter count", "machine": {"host": "a processor"},
                 "workloads": [], "instructions": {"find_entry": 1298}}
        del alone["floor"], alone["peers"]
        for more in ([], ["--title", "counts"]):  # with plots, where Matplotlib is there, and without
            page = self.report(alone, *(more or ["--no-plots"]))
            self.assertIn("| find_entry | 1,298 |", page)
            self.assertNotIn("Floor:", page)

    def test_what_fails_leaves_no_page_and_no_plots(self):
        out = os.path.join(self.folder, "page.md")
        self.write("page.md", "as it was")
        published = self.write("published.jsonl", '{"workload": "a", "us": 1, "by": "b", "goal_us": 1}\n{"workload"')
        for more, text in (([os.path.join(self.folder, "no")], "must be a file that can be read"),
                           ([FIXED, "--published", published], "published.jsonl:2: must be JSON"),
                           ([FIXED, "--published", self.write("p", '[1]')], "p:1: must hold an object"),
                           ([FIXED, "--published", self.write("q", '{"workload": "a", "us": "1"}')],
                            "q:1: \"us\" must be there, a number above 0: got '1'"),
                           ([FIXED, "--out", os.path.join(self.folder, "no", "page.md")], "--out: must be in a folder"),
                           ([self.write("in.json", {**self.document, "instructions": {"a": "x"}})], "instructions.a")):
            done = self.run_main(report, *(["--out", out] + more))
            self.assertEqual(done.returncode, 2, more)
            self.assertIn(text, done.stderr)
            with open(out, encoding="utf-8") as file:
                self.assertEqual(file.read(), "as it was")
        os.remove(out)
        os.mkdir(out)  # cannot be written
        done = self.run_main(report, FIXED, "--out", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("page.md: must be a file that can be written", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.json", "p", "page.md", "published.jsonl", "q"])

    def test_each_field_that_a_program_reads_is_checked_and_named(self):
        def change(*path_and_value):
            *path, last, value = path_and_value
            document = copy.deepcopy(self.document)
            at = document
            for step in path:
                at = at[step]
            at[last] = value
            return document
        kiln = ("workloads", 0, "contenders", 1)
        self.assertEqual(self.document["workloads"][0]["contenders"][1]["name"], "kiln")
        for document, text in (
                (change("instructions", {"whole_call": "981"}), "\"instructions.whole_call\" must be there, a number"),
                (change("instructions", {"whole_call": True}), "got True"),
                (change("instructions", [981]), '"instructions" must be an object: got [981]'),
                (change("peers", {"torch": 2}), '"peers.torch" must be there, a string: got 2'),
                (change("not_run", "deadline"), "\"not_run\" must be a list: got 'deadline'"),
                (change("not_run", ["deadline"]), '"not_run" must be a list of objects'),
                (change("not_run", [{"name": "a"}]), '"not_run\'s reason" must be there, a string: got None'),
                (change("seconds", {"host_path": "1"}), '"seconds.host_path" must be'),
                (change("machine", "device", 5), '"machine.device" must be a string: got 5'),
                (change("machine", "toolkit", "13"), '"machine.toolkit" must be'),
                (change("machine", "host_threads", "x"), '"machine.host_threads" must be'),
                (change("method", "flushed"), '"method" must be an object'), (change("method", "l2", 1), '"method.l2" must'),
                (change("floor", "bytes_per_second", 0), '"floor.bytes_per_second" must be there, a number above 0: got 0'),
                (change("floor", "empty_kernel_us", 1), '"floor.empty_kernel_us" must be an object'),
                (change("workloads", 0, 7), "a workload must be an object: got 7"),
                (change("workloads", 0, "name", " "), "\"workloads' name\" must be"),
                (change("workloads", 0, "op", 3), '"op" must be a string'),
                (change("workloads", 0, "bytes", "many"), "\"bytes\" must be a number, 0 or more: got 'many'"),
                (change("workloads", 0, "seconds", []), '"seconds" must be'),
                (change("workloads", 0, "state", {"watts": "hot"}), '"state.sm_mhz" must be there'),
                (change("workloads", 0, "family", "gemm"), None), (change("workloads", 0, self.product(flops="x")), '"flops"'),
                (change("workloads", 0, {k: v for k, v in self.product().items() if k != "flops"}),
                 'GemmFwdOp 8x4,8x4 float16: "flops" must be there, a number above 0: got None'),
                (change(*kiln, "x"), "a contender must be an object"),
                (change(*kiln, "us", "median", True), '"us.median" must be there, a number above 0: got True'),
                (change(*kiln, "us", "median", float("nan")), '"us.median" must'),
                (change(*kiln, "us", "median", 10 ** 400), '"us.median" must'),
                (change(*kiln, "us", "count", "9"), '"us.count" must be'), (change(*kiln, "clock", 1), '"clock" must say'),
                (change(*kiln, "pass_us", [1, "2"]), '"pass_us" must be a list of numbers'),
                (change(*kiln, "bytes", 0), '"bytes" must be a number above 0'),
                (change(*kiln, "difference_from_kiln", "far"), '"difference_from_kiln" must be a number'),
                (change(*kiln, "percentiles_us", [[0.5]]), '"percentiles_us" must be a list of [share, microseconds]'),
                (change(*kiln, "curve_us", [[1, 5]]), "with a share below 1"),
                (change(*kiln, "beside", {"compiled": "x"}), '"beside.compiled" must be there, a number'),
                (change(*kiln, "error", 5), '"error" must be a string')):
            if text is None:  # a product that says its operations
                self.report(document)
                continue
            path = self.write("in.json", document)
            for module, words in ((report, [path, "--out", os.path.join(self.folder, "p.md")]), (compare, [FIXED, path]),
                                  (contract, [path])):
                done = self.run_main(module, *words)
                self.assertEqual(done.returncode, 2, (text, done.stdout))
                self.assertIn(text, done.stderr)
                self.assertIn("in.json", done.stderr)

    def test_a_field_that_is_null_counts_as_left_out(self):
        for field in ("state", "flops", "op", "seconds"):
            self.document["workloads"][0][field] = None
        self.document["workloads"][0]["contenders"][1]["pass_us"] = None
        self.document.update(not_run=None, instructions=None, method=None)
        self.assertIn("LayerNormFwdOp 1024x1152 bfloat16", self.report(self.document))

    def test_a_product_that_nobody_was_timed_on_has_a_floor_all_the_same(self):
        product = self.product()
        product["contenders"] = [{"name": "kiln", "error": "it broke"}]
        self.document["workloads"].append(product)
        self.assertIn("- kiln, 1 workload: it broke", self.report(self.document))

    def test_latencies_with_parts_missing_make_a_table(self):
        def state(name, percentiles, **more):
            return {"name": f"serving: {name}", "family": "serving", "contenders": [
                {"name": "kiln", "clock": "wall", "us": {"median": 200, "p10": 100, "p90": 300},
                 "percentiles_us": percentiles, **more}]}
        self.document["workloads"] = [state("a", [[0.5, 200], [0.99, 5000]], beside={"compiled": 20}),
                                      state("b", [[0.99, 6000]])]
        page = self.report(self.document)
        self.assertIn("| a | 0.20 | 5.00 | 20 |", page)
        self.assertIn("| b | – | 6.00 | – |", page)

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


if __name__ == "__main__":
    unittest.main()
