"""`kiln bench` and its programs where no device is needed. Usage: programs_test.py KILN GPU_BENCH"""
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KILN, GPU_BENCH = sys.argv[1:3]
LIBRARY = os.path.join(os.path.dirname(GPU_BENCH), "libkiln_bench.so")
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench")
sys.path.insert(0, os.path.join(BENCH, "peers"))
import prewarm  # noqa: E402


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=250, check=False)


@contextlib.contextmanager
def stand_ins(**programs):
    """A folder with kiln and shell scripts in place of programs; $2 is the file of results."""
    with tempfile.TemporaryDirectory() as folder:
        kiln = shutil.copy(KILN, folder)
        for name, text in programs.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
        yield kiln, os.path.join(folder, "results.json")


def read(file):
    with open(file, encoding="utf-8") as text:
        return json.load(text)


ONE_WORKLOAD = 'echo \'{"workloads": [{"name": "a", "family": "f", "contenders": []}]}\' >$2'


class ProgramsTest(unittest.TestCase):
    def test_list_names_the_programs(self):
        done = run(KILN, "bench", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("host_path", "first_call", "warm_scaling", "count_instructions", "tuning_cost", "kiln_serving",
                     "peers.py", "gpu_bench"):
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

    @unittest.skipUnless(os.path.exists(GPU_BENCH), "gpu_bench is not built")
    def test_every_family_has_workloads_and_peers_and_no_two_names_are_alike(self):
        workloads = [json.loads(line) for line in run(GPU_BENCH, "--list").stdout.splitlines()]
        names = [w["name"] for w in workloads]
        self.assertEqual(len(names), len(set(names)))
        families = {w["family"] for w in workloads}
        self.assertEqual(families, {"norm", "gemm", "attention", "gla"})
        for family in families:
            self.assertTrue(os.path.exists(os.path.join(BENCH, "peers", f"{family}_peers.py")), family)
        with open(os.path.join(BENCH, "published.jsonl"), encoding="utf-8") as file:
            published = [json.loads(line)["workload"] for line in file]
        self.assertEqual([name for name in published if name not in names], [])
        self.assertEqual(len(published), len(set(published)))

    @unittest.skipUnless(os.path.exists(LIBRARY), "libkiln_bench.so is not built")
    def test_a_deadline_cuts_all_families_alike(self):
        done = run(sys.executable, os.path.join(BENCH, "peers", "peers.py"), "--library", LIBRARY, "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        workloads = [json.loads(line) for line in done.stdout.splitlines()]
        small = [w["family"] for w in workloads if w["bytes"] <= 1 << 30]
        self.assertEqual([w["family"] for w in workloads][:len(small)], small)  # large ones come last
        for family in set(small):
            share = small.count(family) / len(small)
            for length in range(len(small)):
                self.assertLess(abs(small[:length].count(family) - share * length), 2, (family, length))

    def test_prewarming_takes_one_call_for_each_library_that_is_built(self):
        work = [(i, {"name": str(i), "family": "attention", "dtype": d}) for i, d in enumerate("aabbc")]
        builds, calls = prewarm.tasks_of(work, {"attention": ["torch", "flashinfer"]},
                                         {"attention": {"flashinfer": lambda w: w["dtype"]}})
        self.assertEqual([(w["name"], name) for w, name in builds], [(n, "flashinfer") for n in "024"])
        self.assertEqual([(w["name"], name) for w, name in calls], [(n, "torch") for n in "01234"])

    def test_processes_that_prewarm_take_each_task_once(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"import prewarm; print(*[n for n in range(2000) if prewarm.claimed({folder!r}, n)])"
            parts = [subprocess.Popen([sys.executable, "-B", "-c", code], cwd=os.path.join(BENCH, "peers"), text=True,
                                      stdout=subprocess.PIPE) for _ in range(4)]
            taken = [int(n) for part in parts for n in part.communicate(timeout=60)[0].split()]
        self.assertEqual(sorted(taken), list(range(2000)))

    def test_prewarming_is_one_builder_and_its_parts_and_ends_in_time(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write("import os, sys, time\n"
                           "part, claims = sys.argv[-3], sys.argv[-1]\n"
                           "open(os.path.join(os.path.dirname(__file__), part.replace('/', '_of_')), 'w').write(claims)\n"
                           "time.sleep(600 if part == 'builder' else 0)\n")
            begun = time.monotonic()
            with contextlib.redirect_stdout(io.StringIO()) as said:
                prewarm.run(script, 3, 5)
            self.assertLess(time.monotonic() - begun, 300)  # the builder would sleep for 600
            self.assertIn("by 4 processes", said.getvalue())
            self.assertIn("1 cut short", said.getvalue())
            parts = {name: open(os.path.join(folder, name), encoding="utf-8").read()
                     for name in os.listdir(folder) if name != "script.py"}
            self.assertEqual(set(parts), {"builder", "0_of_3", "1_of_3", "2_of_3"})
            self.assertEqual(len(set(parts.values())), 1)  # they share the claims

    def test_what_cannot_run_here_is_named_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            kiln = shutil.copy(KILN, folder)
            for name in ("peers.py", "suite.py", "prewarm.py"):
                shutil.copy(os.path.join(BENCH, "peers", name), folder)
            results = os.path.join(folder, "results.json")
            environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"}
            done = subprocess.run([kiln, "bench", "--filter", "peers", "--json", results], capture_output=True, text=True,
                                  timeout=250, check=False, env=environment)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            with open(results, encoding="utf-8") as file:
                (skipped,) = json.load(file)["not_run"]
            self.assertEqual(skipped["name"], "peers.py")
            self.assertIn("--library: must be there", skipped["reason"])

    def test_one_that_fails_costs_its_own_results_alone(self):
        with stand_ins(warm_scaling="echo broken; exit 1", tuning_cost=ONE_WORKLOAD, host_path="exit 1",
                   first_call="echo '{\"workloads\": [{\"name\": \"b\"}], \"machine\": [1]}' >$2",
                   count_instructions='echo \'{"instructions": {"whole_call": 981}}\' >$2') as (kiln, results):
            done = run(kiln, "bench", "--filter", "warm_scaling|tuning_cost|count|first", "--json", results)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("first_call: must write its results as docs/benchmarks.md says", done.stderr)
            document = read(results)
            self.assertEqual([w["name"] for w in document["workloads"]], ["a"])
            self.assertEqual(document["instructions"], {"whole_call": 981})
            self.assertEqual([n["name"] for n in document["not_run"]], ["first_call", "warm_scaling"])
            self.assertIn("must succeed: ended with status 1: broken", document["not_run"][1]["reason"])
            self.assertEqual(set(document["seconds"]),
                             {"first_call", "warm_scaling", "tuning_cost", "count_instructions"})

    def test_instructions_alone_are_a_result_and_want_the_program_they_count(self):
        with stand_ins(count_instructions='echo \'{"instructions": {"whole_call": 981}}\' >$2') as (kiln, _):
            done = run(kiln, "bench", "--filter", "count")
            self.assertEqual(done.returncode, 3)
            self.assertIn("got no host_path; build them (ninja -C ", done.stderr)
        with stand_ins(count_instructions='echo \'{"instructions": {"whole_call": 981}}\' >$2', host_path="") as (kiln, _):
            done = run(kiln, "bench", "--filter", "count")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("whole_call: 981 instructions", done.stdout)

    def test_one_that_another_makes_needless_is_not_missed(self):
        for peers, names in ((ONE_WORKLOAD, []), ("exit 3", ["peers.py"])):
            with stand_ins(**{"peers.py": peers, "gpu_bench": ONE_WORKLOAD}) as (kiln, results):
                done = run(kiln, "bench", "--filter", "peers|gpu", "--json", results)
                self.assertEqual(done.returncode, 0, done.stderr)
                document = read(results)
                self.assertEqual([n["name"] for n in document["not_run"]], names)
                self.assertEqual([w["name"] for w in document["workloads"]], ["a"])

    def test_no_program_takes_more_than_is_left(self):
        with stand_ins(first_call="sleep 100", warm_scaling=ONE_WORKLOAD) as (kiln, results):
            begun = time.monotonic()
            done = run(kiln, "bench", "--filter", "first_call|warm_scaling", "--within", "2", "--json", results)
            self.assertLess(time.monotonic() - begun, 60)
            self.assertEqual(done.returncode, 3, done.stderr)
            document = read(results)
            self.assertEqual(document["command"], "kiln bench --within 2 --filter 'first_call|warm_scaling'")
            self.assertEqual([(n["name"], n["reason"]) for n in document["not_run"]],
                             [(name, "takes longer than is left of the 2 s of --within")
                              for name in ("first_call", "warm_scaling")])
        for bad in ("0", "-5", "1.5", "x", "99999999999"):
            done = run(KILN, "bench", "--within", bad)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"must be a number from 1 to 1000000: got {bad}", done.stderr)

    def test_an_interrupt_ends_the_program_and_says_what_was_done(self):
        for signal_, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with stand_ins(first_call=ONE_WORKLOAD, warm_scaling="echo $$ >$0.pid; sleep 1000 & wait",
                       tuning_cost=ONE_WORKLOAD) as (kiln, results):
                scratch = os.path.join(os.path.dirname(kiln), "scratch")
                os.mkdir(scratch)
                started = os.path.join(os.path.dirname(kiln), "warm_scaling.pid")
                with open(results, "w", encoding="utf-8") as file:
                    file.write("what was there before")
                with subprocess.Popen([kiln, "bench", "--filter", "first|warm|tuning", "--json", results],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, "TMPDIR": scratch}) as process:
                    while not (os.path.exists(started) and os.path.getsize(started)):
                        time.sleep(0.01)
                    self.assertEqual([n["reason"] for n in read(results)["not_run"]],
                                     ["kiln bench had not come to it"] * 2)
                    process.send_signal(signal_)
                    out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, status, err)
                self.assertIn("the program under way is ended", err)
                self.assertIn("not run: tuning_cost: interrupted", out)
                document = read(results)
                self.assertEqual([w["name"] for w in document["workloads"]], ["a"])
                self.assertEqual([(n["name"], n["reason"]) for n in document["not_run"]],
                                 [("warm_scaling", "interrupted"), ("tuning_cost", "interrupted")])
                self.assertEqual(os.listdir(scratch), [])
                with open(started, encoding="utf-8") as file, self.assertRaises(ProcessLookupError):
                    os.kill(int(file.read()), 0)

    def test_a_file_that_cannot_be_written_or_a_folder_that_is_not_there_are_named(self):
        with stand_ins(first_call=ONE_WORKLOAD) as (kiln, results):
            done = run(kiln, "bench", "--filter", "first", "--json", "/dev/full")
            self.assertIn("--json must be a file that can be written: /dev/full", done.stderr)
            done = subprocess.run([kiln, "bench", "--filter", "first", "--json", results], capture_output=True, text=True,
                                  check=False, env={**os.environ, "TMPDIR": "/nonexistent"}, timeout=60)
            self.assertEqual(done.returncode, 3)
            self.assertIn("TMPDIR must be a folder in which files can be made", done.stderr)

    def test_the_file_of_results_is_exchanged_and_stays_what_it_is(self):
        with stand_ins(first_call=ONE_WORKLOAD) as (kiln, results):
            real = os.path.join(os.path.dirname(kiln), "real.json")
            with open(real, "w", encoding="utf-8") as file:
                file.write("before")
            os.chmod(real, 0o640)
            os.symlink(real, results)
            with open(real, encoding="utf-8") as opened:  # who has it open still reads what it opened
                self.assertEqual(run(kiln, "bench", "--filter", "first", "--json", results).returncode, 0)
                self.assertEqual(opened.read(), "before")
            self.assertTrue(os.path.islink(results))
            self.assertEqual(read(real)["workloads"][0]["name"], "a")
            self.assertEqual(os.stat(real).st_mode & 0o777, 0o640)
            self.assertEqual([name for name in os.listdir(os.path.dirname(kiln)) if name.endswith(".tmp")], [])

    def test_json_is_one_value_and_nothing_else(self):
        with stand_ins(first_call=ONE_WORKLOAD) as (kiln, _):
            self.assertIn("first_call", [one["name"] for one in json.loads(run(kiln, "--json", "bench", "--list").stdout)])
            done = run(kiln, "--json", "bench", "--filter", "first")
            self.assertEqual(json.loads(done.stdout)["workloads"][0]["name"], "a")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
