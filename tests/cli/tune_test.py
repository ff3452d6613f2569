"""kiln tune: real sweeps on the CPU backend, each in a process of its own, with candidates that crash and hang."""

import json
import os
import signal
import subprocess
import time
import unittest

import kiln_test_case
from kiln_test_case import CALL, KilnTestCase, main

# Traps of tests/tuning/tuning_backend.h.
WRONG, CRASH, HANG, CRASH_DEFAULT = 1, 2, 4, 256
BEST = {"work": 1, "kind": 0, "twin": 0}
DEFAULT = {"work": 8, "kind": 0, "twin": 0}
ENV = {"KILN_BACKEND_PATH": os.environ["TUNING_PLUGIN"]}


def toy(traps, **inputs):
    return {
        "op": "TuningToyFwdOp",
        "params": {"traps": traps},
        "inputs": {"x": {"dtype": "float32", "shape": [4096]}, **inputs},
    }


class TuneTest(KilnTestCase):
    def tune(self, *words, **options):
        words = (*words, "--device", "cpu", "--rounds", "7")
        return self.ok("tune", *words, env=ENV, **options)

    def one_sweep(self, output):
        self.assertEqual(len(output["results"]), 1)
        self.assertIsNone(output["results"][0]["error"])
        self.assertEqual(len(output["results"][0]["sweeps"]), 1)
        sweep = output["results"][0]["sweeps"][0]
        self.assertIsNone(sweep["error"])
        return sweep

    def states(self, sweep):
        return {json.dumps(c["config"]): (c["state"], c.get("reason", "")) for c in sweep["candidates"]}

    def config_in_force(self, call):
        return self.ok("warm", call, "--device", "cpu", env=ENV)

    def test_an_interrupt_says_what_was_done_what_is_kept_and_how_to_go_on(self):
        calls = self.write("calls.jsonl", "".join(json.dumps(toy(traps)) + "\n" for traps in (WRONG, 0, 8, 128, 9, 129)))
        for signal_number, code, more in ((signal.SIGINT, 130, []), (signal.SIGTERM, 143, ["--force"])):
            process = self.start("tune", "--calls", calls, "--device", "cpu", "--rounds", "7", *more, env=ENV)
            while "[1/6]" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.send_signal(signal_number)
            out, err = process.communicate(timeout=300)
            self.assertEqual(process.returncode, code, err)
            self.assertRegex(out, r"interrupted: \d of 6 calls were tuned, \d were not begun; their records are kept in \S.*/tuning; "
                                  r"the same command" + (" without --force" if more else "") + " goes on from there")
            self.assertNotIn("0 were not begun", out)
            self.assertIn("stopping", err)
            self.assertTrue(os.listdir(os.path.join(self.cache, "tuning")))
        # The same again sweeps nothing that has a record.
        again = self.tune("--calls", calls)
        self.assertFalse(again["interrupted"])
        self.assertEqual((again["not_done"], len(again["results"])), (0, 6))
        self.assertTrue(again["results"][0]["sweeps"][0]["from_record"])

    def test_the_winner_is_found_kept_and_used(self):
        output = self.tune(toy(WRONG))
        sweep = self.one_sweep(output)
        self.assertEqual(sweep["winner"], BEST, sweep["decision"])
        self.assertEqual(sweep["default"], DEFAULT)
        self.assertLess(sweep["winner_seconds"], sweep["default_seconds"])
        states = self.states(sweep)
        self.assertEqual(states[json.dumps({"work": 1, "kind": 1, "twin": 0})][0], "wrong")
        self.assertEqual(output["results"][0]["children"], 1)
        # A second time nothing is swept: a job that was killed goes on where it was.
        again = self.one_sweep(self.tune(toy(WRONG)))
        self.assertTrue(again["from_record"])
        self.assertEqual(again["winner"], BEST)
        why = self.ok("why", toy(WRONG), "--device", "cpu", env=ENV)
        self.assertEqual(why["tier"], "disk", "the winner's artifact is what a call needs")

    def test_a_forced_sweep_that_is_cut_short_replaces_none_that_was_not(self):
        self.one_sweep(self.tune(toy(0)))
        cut = self.one_sweep(self.tune(toy(0), "--force", "--budget", "0"))
        self.assertEqual((cut["winner"], cut["from_record"]), (BEST, True))
        again = self.one_sweep(self.ok("tune", toy(0), "--force", "--devices", "cpu,cpu", "--rounds", "7", env=ENV))
        self.assertEqual((again["winner"], again["from_record"]), (BEST, False))

    def test_a_candidate_that_crashes_costs_itself(self):
        output = self.tune(toy(CRASH))
        sweep = self.one_sweep(output)
        self.assertEqual(sweep["winner"], BEST, sweep["decision"])
        self.assertEqual(output["results"][0]["children"], 2)
        state, reason = self.states(sweep)[json.dumps({"work": 1, "kind": 2, "twin": 0})]
        self.assertEqual(state, "excluded")
        self.assertIn("signal 4", reason)

    def test_a_candidate_that_hangs_costs_itself(self):
        output = self.tune(toy(HANG), "--hang-limit", "5")
        sweep = self.one_sweep(output)
        self.assertEqual(sweep["winner"], BEST, sweep["decision"])
        state, reason = self.states(sweep)[json.dumps({"work": 1, "kind": 3, "twin": 0})]
        self.assertEqual(state, "excluded")
        self.assertIn("without an end", reason)

    def test_a_default_that_crashes_is_reported(self):
        result = self.kiln("tune", toy(CRASH_DEFAULT), "--device", "cpu", "--json", env=ENV)
        self.assertEqual(result.code, 3, result.err)
        output = json.loads(result.out)
        self.assertEqual(output["failed"], 1)
        self.assertIn("signal 4", output["results"][0]["sweeps"][0]["error"])

    def test_a_file_of_calls_is_shared_out(self):
        calls = self.write("calls.jsonl", "\n".join(json.dumps(toy(t)) for t in (0, WRONG)) + "\n")
        first = self.tune("--calls", calls, "--shard", "0/2")
        self.assertEqual([r["where"] for r in first["results"]], [f"{calls}:1"])
        second = self.ok("tune", "--calls", calls, "--device", "cpu", "--shard", "slurm",
                         env={**ENV, "SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MIN": "3",
                              "SLURM_ARRAY_TASK_COUNT": "2"})
        self.assertEqual([r["where"] for r in second["results"]], [f"{calls}:2"])
        self.refused(2, "--shard must be", "tune", "--calls", calls, "--device", "cpu", "--shard", "2/2", env=ENV)
        self.refused(2, "JOB_COMPLETION_INDEX", "tune", "--calls", calls, "--device", "cpu", "--shard", "k8s/2", env=ENV)

    def test_records_are_shown_exported_imported_and_cleared(self):
        self.one_sweep(self.tune(toy(0)))
        records = self.ok("tune", "show", env=ENV)["records"]
        self.assertEqual(len(records), 1)
        self.assertEqual(records[0]["winner"], "work=1 kind=0 twin=0")
        shown = self.kiln("tune", "show", records[0]["name"], env=ENV)
        self.assertEqual(json.loads(shown.out)["winner"], BEST)
        exported = self.path("records.json")
        self.assertEqual(self.ok("tune", "export", exported, env=ENV)["records"], 1)
        self.assertEqual(self.ok("tune", "clear", env=ENV)["removed"], 1)
        self.assertEqual(self.ok("tune", "show", env=ENV)["records"], [])
        self.assertEqual(self.ok("tune", "import", exported, env=ENV)["kept"], 1)
        self.assertEqual(self.ok("tune", "import", exported, env=ENV)["kept"], 0, "as well measured")
        self.assertTrue(self.one_sweep(self.tune(toy(0)))["from_record"])
        self.refused(3, "there is none of name", "tune", "show", "0" * 32, env=ENV)
        self.refused(2, "must be a file that", "tune", "import", self.write("other.json", "{}"), env=ENV)

    def test_packs_carry_records(self):
        self.one_sweep(self.tune(toy(0)))
        pack = self.path("all.kpack")
        exported = self.ok("cache", "export", pack, env=ENV)
        self.assertEqual(exported["records"], 1)
        self.cache = self.path("other cache")
        imported = self.ok("cache", "import", pack, env=ENV)
        self.assertEqual(imported["records"], 1)
        self.assertTrue(self.one_sweep(self.tune(toy(0)))["from_record"])
        # And as a layer, without an import.
        self.cache = self.path("third cache")
        layered = self.ok("tune", toy(0), "--device", "cpu", env={**ENV, "KILN_CACHE_LAYERS": pack})
        self.assertTrue(self.one_sweep(layered)["from_record"])

    def test_machines_that_share_a_remote_store_use_one_winner(self):
        port = self.start_redis()
        machine = lambda name, **env: self.machine(name, port, **ENV, **env)
        words = ("tune", json.dumps(toy(0)), "--device", "cpu", "--rounds", "7", "--json")
        together = [self.start(*words, env=machine(name)) for name in ("one", "two", "three")]
        sweeps = [self.one_sweep(self.finish(process)) for process in together]
        self.assertEqual([sweep["from_record"] for sweep in sweeps].count(False), 1, "one sweep, others wait for it")
        for sweep in sweeps:
            self.assertEqual(sweep["winner"], BEST, sweep["decision"])
        for name in ("one", "two", "three"):
            self.assertEqual(len(os.listdir(os.path.join(self.path(name), "tuning"))), 1, name)
        # A machine that does not tune uses it, and says so before anything is built.
        config = lambda env: self.ok("explain", toy(0), "--device", "cpu", env=env)["plan"][0]["config"]
        self.assertEqual(config(machine("reads")), BEST)
        self.assertEqual(config(machine("off", KILN_TUNED="off")), DEFAULT)
        self.assertEqual(config({**ENV, "KILN_CACHE_DIR": self.path("alone")}), DEFAULT)
        # What it took is on its disk now; a store that is gone is no trouble.
        self.redis.kill()
        self.redis.wait()
        self.assertEqual(config(machine("reads")), BEST)
        self.assertEqual(config(machine("late")), DEFAULT)

    def test_a_record_that_does_not_hold_here_hides_none_that_does(self):
        self.one_sweep(self.tune(toy(0)))
        pack = self.path("fresh.kpack")
        self.ok("cache", "export", pack, env=ENV)
        folder = os.path.join(self.cache, "tuning")
        (name,) = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            record = json.load(file)
        record["source"] = "0" * 32
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(record, file)
        config = lambda **env: self.ok("explain", toy(0), "--device", "cpu", env={**ENV, **env})["plan"][0]["config"]
        self.assertEqual(config(), DEFAULT)
        self.assertEqual(config(KILN_CACHE_LAYERS=pack), BEST)

    def test_explain_shows_the_tuned_configuration_without_an_artifact(self):
        self.one_sweep(self.tune(toy(0)))
        exported = self.path("records.json")
        self.ok("tune", "export", exported, env=ENV)
        self.cache = self.path("without artifacts")
        self.ok("tune", "import", exported, env=ENV)
        for compiler in ({}, {"KILN_CXX": "/nowhere/c++"}):
            plan = self.ok("explain", toy(0), "--device", "cpu", env={**ENV, **compiler})["plan"][0]
            self.assertEqual(plan["config"], BEST)
            self.assertIsNone(plan["programs"][0]["tier"])

    def test_a_kernel_of_the_tree_is_tuned(self):
        sweep = self.one_sweep(self.tune(CALL, "--budget", "60"))
        self.assertEqual(sweep["op"], "LayerNormFwdOp")
        self.assertTrue(all(state != "wrong" for state, _ in self.states(sweep).values()))
        self.assertIn("block_elements", sweep["winner"])

    def test_the_report_is_one_page_that_needs_nothing_else(self):
        page = self.path("report.html")
        sweep = self.one_sweep(self.tune(toy(WRONG), "--report", page))
        self.assertEqual(sweep["bytes"], 2 * 4096 * 4)
        self.assertGreater(sweep["roofline_seconds"], 0)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("<!doctype html>"))
        self.assertEqual(text.count("<h2"), 1)
        # Another call of the same kernel finds its record, which was measured in the first: no other roofline.
        other = toy(WRONG)
        other["inputs"]["x"]["shape"] = [8192]
        both = self.tune(toy(WRONG), other, "--report", page)["results"]
        self.assertGreater(both[0]["sweeps"][0]["roofline_seconds"], 0)
        self.assertNotIn("roofline_seconds", both[1]["sweeps"][0])
        with open(page, encoding="utf-8") as file:
            self.assertEqual(file.read().count("<h2"), 1)
        for part in ("<svg", "tuning_toy", " winner</text>", " default</text>", "must be the default&", ">roofline ",
                     "Roofline: a copy that moves 32.77 kB"):
            self.assertIn(part.rstrip("&"), text)
        for outside in ("http:", "https:", "src=", "@import"):
            self.assertNotIn(outside, text)

    def test_a_sweep_ends_with_its_parent(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        environment.update(ENV, KILN_CACHE_DIR=self.cache)
        parent = subprocess.Popen(
            [kiln_test_case.KILN, "tune", json.dumps(toy(HANG)), "--device", "cpu", "--hang-limit", "300"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = f"/proc/{parent.pid}/task/{parent.pid}/children"

        def child_of(pid):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    for one in file.read().split():
                        return int(one)
            return None

        child = None
        while child is None and parent.poll() is None:
            child = child_of(parent.pid)
            time.sleep(0.05)
        self.assertIsNotNone(child, children)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        deadline = time.time() + 60
        while os.path.exists(f"/proc/{child}/stat") and time.time() < deadline:
            with open(f"/proc/{child}/stat", encoding="ascii", errors="replace") as file:
                if file.read().split(")")[-1].split()[0] == "Z":
                    break
            time.sleep(0.05)
        else:
            self.assertFalse(os.path.exists(f"/proc/{child}/stat"), "the sweep outlived its parent")

    def test_wrong_usage(self):
        self.refused(2, "calls must be given", "tune", "--device", "cpu", env=ENV)
        self.refused(2, "must be", "tune", toy(0), "--device", "nonsense:x", env=ENV)
        self.refused(2, "--policy: must be one of automatic, exhaustive, halving: got best", "tune", toy(0), "--policy", "best",
                     env=ENV)
        self.refused(2, "--report must be a file that can be written", "tune", toy(0), "--device", "cpu",
                     "--report", "/nowhere/page.html", env=ENV)
        self.refused(2, "--rounds: must be at least 1: got 0", "tune", toy(0), "--rounds", "0", env=ENV)
        self.refused(2, "--hang-limit: must be more than 0: got no", "tune", toy(0), "--hang-limit", "no", env=ENV)


if __name__ == "__main__":
    main()
