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

    def test_plain_text(self):
        result = self.kiln("doctor")
        self.assertEqual(result.code, 0)
        self.assertIn("host compiler", result.out)


if __name__ == "__main__":
    main()
