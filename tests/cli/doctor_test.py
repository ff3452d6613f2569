import os
import unittest

from kiln_test_case import KilnTestCase, main


class DoctorTest(KilnTestCase):
    def checks(self, **options):
        report = self.ok("doctor", **options)
        for check in report["checks"]:
            self.assertEqual(set(check), {"name", "ok", "found", "advice"})
            self.assertTrue(check["found"], check)
            self.assertTrue(check["ok"] or check["advice"], check)
        return {check["name"]: check for check in report["checks"]}

    def test_what_is_here_is_found(self):
        checks = self.checks()
        for name in ["nvrtc", "driver", "host compiler", "cache", "backends", "device cpu:0"]:
            self.assertIn(name, checks)
        self.assertTrue(checks["host compiler"]["ok"])
        self.assertEqual(checks["cache"]["found"], self.cache)

    def test_what_is_missing_is_told_with_advice(self):
        checks = self.checks(env={"KILN_NVRTC": "/nowhere/libnvrtc.so", "KILN_CXX": "/nowhere/c++", "KILN_CACHE_DIR": "/proc/no"})
        for name, fragment in [("nvrtc", "CUDA Toolkit"), ("host compiler", "KILN_CXX"), ("cache", "KILN_CACHE_DIR")]:
            self.assertFalse(checks[name]["ok"], name)
            self.assertIn(fragment, checks[name]["advice"])

    def test_a_backend_that_does_not_load_is_listed(self):
        bad = self.write("libacme.so", "this is no shared object\n")
        checks = self.checks(env={"KILN_BACKEND_PATH": bad})
        self.assertFalse(checks["backend " + bad]["ok"])

    @unittest.skipUnless("TEST_PLUGINS" in os.environ, "a portable build has no plugins")
    def test_a_plugin_that_ends_the_process_is_found_and_not_opened_here(self):
        good, crashes, exits = (
            os.path.realpath(os.path.join(os.environ["TEST_PLUGINS"], name))
            for name in ("good.so", "crashes.so", "exits.so")
        )
        env = {"KILN_BACKEND_PATH": ":".join([crashes, good, exits])}
        self.assertNotEqual(self.kiln("ops", env=env).code, 0)  # it does crash who opens it
        checks = self.checks(env=env)
        self.assertTrue(checks["backend " + good]["ok"])
        for file, fragment in [(crashes, "takes the process that opens it along"), (exits, "ends the process")]:
            self.assertFalse(checks["backend " + file]["ok"])
            self.assertIn(fragment, checks["backend " + file]["found"])
        checks = self.checks(env={**env, "KILN_DISABLE_BACKENDS": "crashes,exits"})
        self.assertNotIn("backend " + crashes, checks)

    def test_plain_text(self):
        result = self.kiln("doctor")
        self.assertEqual(result.code, 0)
        self.assertIn("host compiler", result.out)


if __name__ == "__main__":
    main()
