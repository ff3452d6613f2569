"""The circle of a deployment: record in a service, warm elsewhere, ship a pack, serve without compiling."""

import json
import os
import subprocess

import kiln_test_case
from kiln_test_case import CALL, KilnTestCase, changed, main

NOWHERE = {"KILN_NVRTC": "/nowhere/libnvrtc.so", "CUDA_HOME": "/nowhere", "KILN_CXX": "/nowhere/c++"}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class RecordTest(KilnTestCase):
    def setUp(self):
        super().setUp()
        self.calls = self.path("recorded calls.jsonl")

    def record(self, *calls):
        """Processes that run the calls at the same time and share the file."""
        env = {**os.environ, "KILN_CACHE_DIR": self.cache, "KILN_RECORD_CALLS": self.calls}
        words = [[kiln_test_case.KILN, "run", json.dumps(call), "--device", "cpu", "--json"] for call in calls]
        started = [subprocess.Popen(w, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for w in words]
        for process in started:
            _out, err = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, err)

    def folder_env(self, name, **env):
        return {"KILN_CACHE_DIR": self.path(name), **env}

    def test_the_whole_circle_on_the_cpu(self):
        other = changed("params.eps", 1e-3)
        self.record(CALL, other, CALL)
        self.record(CALL, other)
        recorded = lines_of(self.calls)
        self.assertEqual(len(recorded), 2)
        self.assertEqual({call["params"]["eps"] for call in recorded}, {1e-5, 1e-3})
        self.assertEqual({call["device"] for call in recorded}, {"cpu:0"})

        # The build machine: another cache, the devices that the calls name.
        build = self.folder_env("build machine")
        report = self.ok("warm", "--calls", self.calls, env=build)
        self.assertEqual((report["calls"], report["built"], report["boards"]), (2, 2, ["cpu:0"]))
        trusted = self.ok("cache", "keygen", self.path("key"))["public_key"]
        pack = self.path("kernels.kpack")
        self.ok("cache", "export", pack, "--sign-key", self.path("key"), env=build)

        # The serving machine: no compiler, nothing may compile, an empty cache.
        serve = self.folder_env("serving", KILN_CACHE_LAYERS=pack, KILN_TRUSTED_KEYS=trusted, KILN_COMPILE="forbid",
                                **NOWHERE)
        self.ok("check", "--calls", self.calls, "--device", "cpu", "--pack", pack, env=serve)
        for call in [CALL, other]:
            report = self.ok("run", call, "--device", "cpu", env=serve)
            self.assertTrue(report["ok"])
            self.assertEqual(report["tier"], "layer")
        # What was not recorded is refused with what to do, and written down for the next time.
        new = self.path("new.jsonl")
        result = self.kiln("run", changed("params.eps", 0.5), "--device", "cpu", env={**serve, "KILN_RECORD_CALLS": new})
        self.assertEqual(result.code, 3)
        self.assertIn("kiln warm", result.err)
        self.assertEqual([call["params"]["eps"] for call in lines_of(new)], [0.5])

    def test_what_was_recorded_on_one_device_is_warmed_for_boards_that_are_not_here(self):
        self.record(CALL)
        report = self.ok("warm", "--calls", self.calls, "--board", "h200,a100")
        self.assertEqual((report["boards"], report["built"]), (["h200", "a100"], 2))
        pack = self.path("kernels.kpack")
        self.ok("cache", "export", pack)
        serve = self.folder_env("serving", KILN_COMPILE="forbid", **NOWHERE)
        report = self.ok("check", "--calls", self.calls, "--board", "h200,a100", "--pack", pack, env=serve)
        self.assertEqual((report["missing"], report["failed"], report["hits"]["layer"]), (0, 0, 2))

    def test_trouble_with_the_file_costs_a_warning_and_no_call(self):
        result = self.kiln("run", CALL, "--device", "cpu", "--json", env={"KILN_RECORD_CALLS": self.path("no/folder")})
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("no calls are recorded", result.err)

    def test_a_line_that_was_cut_off_is_replaced(self):
        self.record(CALL)
        with open(self.calls, "a", encoding="utf-8") as file:
            file.write('{"op":"LayerNo')  # as a machine that lost its power may leave it
        self.refused(2, "recorded calls.jsonl:2", "warm", "--calls", self.calls)
        self.record(changed("params.eps", 1e-3))
        self.assertEqual(len(lines_of(self.calls)), 2)


if __name__ == "__main__":
    main()
