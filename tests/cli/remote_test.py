import json

from kiln_test_case import CALL, KilnTestCase, changed, main

CUDA = ["--arch", "90"]


class RemoteTest(KilnTestCase):
    """Machines, each with a cache folder of its own, that share a redis-server."""

    def setUp(self):
        super().setUp()
        self.port = self.start_redis()

    def machine(self, name, **env):
        return super().machine(name, self.port, **env)

    def test_what_one_machine_warms_another_finds(self):
        self.assertEqual(self.ok("warm", CALL, *CUDA, env=self.machine("one"))["built"], 1)
        self.assertEqual(self.ok("why", CALL, *CUDA, env=self.machine("look"))["tier"], "remote")
        report = self.ok("warm", CALL, *CUDA, env=self.machine("two"))
        self.assertEqual((report["built"], report["hits"]["remote"]), (0, 1))
        report = self.ok("warm", CALL, *CUDA, env={"KILN_CACHE_DIR": self.path("two")})
        self.assertEqual((report["built"], report["hits"]["disk"]), (0, 1))
        # Neither a compiler nor the right to use one.
        bare = self.machine("bare", KILN_COMPILE="forbid", KILN_NVRTC="/nowhere/libnvrtc.so", CUDA_HOME="/nowhere")
        report = self.ok("warm", CALL, *CUDA, env=bare)
        self.assertEqual((report["built"], report["hits"]["remote"]), (0, 1))

    def test_machines_that_start_together_build_each_call_once(self):
        calls = [changed("params.eps", eps * 1e-5) for eps in range(1, 9)]
        path = self.write("calls.jsonl", "".join(json.dumps(call) + "\n" for call in calls))
        started = [self.start("warm", "--calls", path, *CUDA, "--json", env=self.machine(f"m{i}")) for i in range(3)]
        reports = [self.finish(process) for process in started]
        self.assertEqual(sum(report["built"] for report in reports), len(calls), reports)

    def test_signed_values(self):
        trusted = self.ok("cache", "keygen", self.path("key"))["public_key"]
        self.ok("warm", CALL, *CUDA, env=self.machine("one"))
        report = self.ok("warm", CALL, *CUDA, env=self.machine("two", KILN_TRUSTED_KEYS=trusted,
                                                              KILN_SIGNING_KEY=self.path("key")))
        self.assertEqual(report["built"], 1, "the unsigned one is not taken")
        report = self.ok("warm", CALL, *CUDA, env=self.machine("three", KILN_TRUSTED_KEYS=trusted))
        self.assertEqual((report["built"], report["hits"]["remote"]), (0, 1))

    def test_a_signing_key_that_cannot_be_read_writes_nothing(self):
        result = self.kiln("warm", CALL, *CUDA, env=self.machine("one", KILN_SIGNING_KEY="/nowhere/key"))
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("nothing is written to the remote cache", result.err)
        self.assertEqual(self.ok("warm", CALL, *CUDA, env=self.machine("two"))["built"], 1)

    def test_a_pack_fills_the_remote_cache(self):
        self.ok("warm", CALL, *CUDA)
        self.ok("cache", "export", self.path("a.kpack"))
        self.ok("cache", "import", self.path("a.kpack"), env=self.machine("one"))
        self.assertEqual(self.ok("warm", CALL, *CUDA, env=self.machine("two"))["hits"]["remote"], 1)

    def test_doctor_and_stats_show_the_store_and_no_credential(self):
        env = self.machine("one", KILN_CACHE_LAYERS=self.path("no.kpack"))
        checks = {check["name"]: check for check in self.ok("doctor", env=env)["checks"]}
        self.assertTrue(checks["remote cache"]["ok"])
        self.assertFalse(checks["layer " + self.path("no.kpack")]["ok"])
        stats = self.ok("cache", "stats", env=env)
        self.assertEqual(stats["remote"]["address"], f"redis://127.0.0.1:{self.port}/0")
        self.assertIn("No such file", stats["layers"][0]["skipped"])
        self.redis.kill()
        self.redis.wait()
        dead = self.kiln("doctor", env=env)
        self.assertIn("must answer", dead.out)
        warm = self.kiln("warm", CALL, *CUDA, env=env)
        self.assertEqual(warm.code, 0, warm.err)
        for shown in (dead.out, dead.err, warm.out, warm.err, str(stats), str(checks)):
            self.assertNotIn("s3cret", shown)


if __name__ == "__main__":
    main()
