"""bench/compare.py and bench/contract.py on four workloads of a real run on an H200, and on changed copies of it."""
import copy
import unittest

from results_test_case import FIXED, ResultsTestCase
import compare
import contract


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
        self.assertIn("must hold <!-- contract --> and <!-- end of contract --> once each, in this order: got 0 and 0",
                      done.stderr)
        begin, end = "<!-- contract -->\n", "<!-- end of contract -->\n"
        for text, got in ((begin * 2 + end, "got 2 and 1"), (begin, "got 1 and 0"), (end + begin, "got 1 and 1, the second")):
            page = self.write("page.md", text)
            done = self.run_main(contract, FIXED, "--in", page)
            self.assertEqual(done.returncode, 2)
            self.assertIn(got, done.stderr)
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        with open(page, "wb") as file:
            file.write(b"\xff")
        self.assertIn("must be text in UTF-8", self.run_main(contract, FIXED, "--in", page).stderr)

    def test_counts_alone_are_in_the_table(self):
        alone = {**self.document, "workloads": [], "instructions": {"find_entry": 298}}
        self.assertIn("| not timed in these runs, 298 instructions |  |  | open |",
                      self.run_main(contract, self.write("in.json", alone)).stdout)

    def test_what_a_row_needs_and_a_file_lacks_is_said(self):
        us = {"median": 5, "p10": 5, "p90": 5, "count": 9}
        self.document["instructions"] = {"find_entry": 298}
        self.document["workloads"] += [
            {"name": f"host path: {path}/threads:1", "family": "host path", "contenders": [
                {"name": "kiln", "clock": "processor", "us": {**us, "median": 0.1, "p10": 0.1, "p90": 0.1}}]}
            for path in ("find_entry", "whole_call")]
        self.document["workloads"].append({"name": "host time: norm", "family": "host time", "contenders": [
            {"name": "kiln", "clock": "wall", "us": us}]})
        del self.document["floor"]
        other = {**self.document, "instructions": {"whole_call": 981}, "workloads": []}
        for more, text in (([], "| 100.0 ns |  | 0.67 of the bound |  |"),
                           ([self.write("other.json", other)], "| 100.0 ns, 981 instructions |  | 0.67 of the bound |  |")):
            done = self.run_main(contract, self.write("in.json", self.document), *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in (text, "100.0 ns, 298 instructions", "| 5.00 us; no 'driver launch alone' beside it |  |  | open |",
                         "| 4 workloads, no floor |"):
                self.assertIn(line, done.stdout)


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

    def test_counts_alone_are_compared(self):
        alone = {**self.document, "workloads": []}
        before = self.write("before.json", {**alone, "instructions": {"whole_call": 1000, "find_entry": 0}})
        for counts, status, text in (
                ({"whole_call": 1020, "find_entry": 0}, 1, "instructions: 1 more, 0 fewer, 1 alike"),
                ({"whole_call": 1000, "find_entry": 5}, 1, "find_entry: 0 -> 5 instructions\n"),
                ({"whole_call": 1001, "find_entry": 0}, 0, "instructions: 0 more, 0 fewer, 2 alike"),
                ({"find_entry": 0}, 1, "measured before, not now:\n  whole_call, instructions\n"),
                ({"other": 1}, 2, "got 0 timings and 2 counts before, 0 timings and 1 counts after"),
                ({"whole_call": "1020"}, 2, "\"instructions.whole_call\" must be there, a number, 0 or more: got '1020'")):
            done = self.run_main(compare, before, self.write("after.json", {**alone, "instructions": counts}))
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertIn(text, done.stdout + done.stderr)

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
        self.assertIn("must have a timing or a count of instructions in common: got 23 timings and 0 counts before",
                      done.stderr)

    def test_another_host_or_command_is_said_and_other_files_are_not(self):
        program = "bench/peers/peers.py --library build/release/bin/libkiln_bench.so --family norm --json norm.json"
        self.document["command"] = "python3 /elsewhere/" + program + "2"
        self.assertNotIn("not like for like", self.compare().stdout)
        self.document["command"] += " --warm-l2"
        self.document["machine"].update(host="a processor, 4 threads", host_threads=4)
        said = self.compare().stdout
        for text in ("host: not given before, a processor, 4 threads after", "host threads: 16 before, 4 after",
                     "command: python3 peers.py before, python3 peers.py --warm-l2 after"):
            self.assertIn(text, said)


if __name__ == "__main__":
    unittest.main()
