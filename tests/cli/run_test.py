import os

from kiln_test_case import CALL, KilnTestCase, changed, main


def with_dtype(dtype):
    call = changed("inputs.x.dtype", dtype)
    call["inputs"]["weight"]["dtype"] = call["inputs"]["bias"]["dtype"] = dtype
    return call


class RunTest(KilnTestCase):
    def test_the_first_run_builds_and_the_second_finds_it_on_disk(self):
        first = self.ok("run", CALL, "--device", "cpu")
        self.assertEqual(first["op"], "LayerNormFwdOp")
        self.assertEqual(first["tier"], "built")
        self.assertTrue(first["ok"])
        self.assertLessEqual(first["max_error"], first["tolerance"])
        self.assertGreater(first["max_error"], 0)  # a rounding there must be: nothing was compared otherwise
        self.assertRegex(first["identity"], "^[0-9a-f]{32}$")
        self.assertRegex(first["key"], "^[0-9a-f]{64}$")
        self.assertEqual(set(first["seconds"]), {"open", "fill", "build", "load", "run", "host"})
        self.assertGreater(first["seconds"]["run"], 0)
        self.assertGreaterEqual(first["seconds"]["host"], first["seconds"]["fill"] + first["seconds"]["build"])
        self.assertGreater(first["roofline_seconds"], 0)
        self.assertIn("a copy that moves", first["roofline"])
        second = self.ok("run", CALL, "--device", "cpu")
        self.assertEqual(second["tier"], "disk")
        for field in ["chosen", "identity", "key", "max_error"]:
            self.assertEqual(first[field], second[field], field)
        self.assertLess(second["seconds"]["build"], first["seconds"]["build"])
        self.assertIn("nothing was built", self.kiln("run", CALL, "--device", "cpu").out)

    def test_a_tensor_that_does_not_fit_in_memory_is_named(self):
        # Longer than any vector, so that nothing is asked of the allocator.
        self.refused(3, "[36028797018963967, 128]", "run", changed("inputs.x.shape", [2**55 - 1, 128]), "--device", "cpu")

    def test_dtypes_strides_alignment_and_absent_inputs_are_right(self):
        for call in [
            with_dtype("bfloat16"),
            with_dtype("float32"),
            changed("inputs.bias", None),
            changed("inputs.weight", None),
            changed("inputs.x.strides", [333, 1]),
            changed("inputs.x.align", 2),
            changed("inputs.x.shape", [128]),
            changed("inputs.x.shape", [2, 3, 4, 128]),
        ]:
            report = self.ok("run", call, "--device", "cpu")
            self.assertTrue(report["ok"], call)

    def test_layouts_that_are_not_served_are_refused(self):
        self.refused(2, "[0, 1]", "run", changed("inputs.x.strides", [0, 1]), "--device", "cpu")

    def test_empty_batch(self):
        report = self.ok("run", changed("inputs.x.shape", [0, 128]), "--device", "cpu")
        self.assertTrue(report["ok"])
        self.assertEqual(report["max_error"], 0)

    def test_seeds_change_the_data(self):
        errors = {self.ok("run", CALL, "--device", "cpu", "--seed", seed)["max_error"] for seed in [1, 2, 3]}
        self.assertGreater(len(errors), 1)

    def test_no_check(self):
        report = self.ok("run", CALL, "--device", "cpu", "--no-check")
        self.assertFalse(report["checked"])
        self.assertIsNone(report["max_error"])
        self.assertTrue(report["ok"])
        # Longer than the table of values that is repeated, strided, and off by an element.
        for call in [changed("inputs.x.shape", [3000, 128]), changed("inputs.x.strides", [333, 1]), changed("inputs.x.align", 2)]:
            self.assertTrue(self.ok("run", call, "--device", "cpu", "--no-check")["ok"], call)

    def test_a_wrong_kernel_is_seen(self):
        # The embedded sources are read from a folder, where the mean is taken of one element too few.
        folder = self.path("kernels")
        name = self.ok("explain", CALL, "--device", "cpu")["plan"][0]["programs"][0]["source"]
        tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            text = file.read()
        os.makedirs(os.path.dirname(os.path.join(folder, name)))
        self.assertIn("EPS", text)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text.replace("EPS", "(EPS + 0.01)"))
        result = self.kiln("run", CALL, "--device", "cpu", "--json", env={"KILN_KERNEL_PATH": folder})
        self.assertEqual(result.code, 3, result.out + result.err)
        self.assertFalse(result.json["ok"])
        self.assertGreater(result.json["max_error"], result.json["tolerance"])
        self.assertIn("WRONG", self.kiln("run", CALL, "--device", "cpu", env={"KILN_KERNEL_PATH": folder}).out)

    def test_a_source_that_does_not_compile_cannot_be_run(self):
        name = self.ok("explain", CALL, "--device", "cpu")["plan"][0]["programs"][0]["source"]
        path = os.path.join(self.path("kernels"), name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("this is no C++\n")
        environment = {"KILN_KERNEL_PATH": self.path("kernels")}
        result = self.refused(3, "kiln compile", "run", CALL, "--device", "cpu", env=environment)
        self.assertEqual(result.json["error"]["kind"], "CompileError")

    def test_devices_that_are_not_there(self):
        self.refused(3, "cpu", "run", CALL, "--device", "acme")
        self.refused(3, "index 7", "run", CALL, "--device", "cpu:7")
        self.refused(2, "cuda:x", "run", CALL, "--device", "cuda:x")

    def test_forbid_runs_what_is_warm_and_nothing_else(self):
        environment = {"KILN_COMPILE": "forbid"}
        self.refused(3, "kiln warm", "run", CALL, "--device", "cpu", env=environment)
        self.ok("warm", CALL, "--device", "cpu")
        report = self.ok("run", CALL, "--device", "cpu", env=environment)
        self.assertEqual(report["tier"], "disk")

    def test_a_cache_that_cannot_be_written_costs_a_build(self):
        report = self.ok("run", CALL, "--device", "cpu", env={"KILN_CACHE_DIR": "/proc/no/such/folder"})
        self.assertEqual(report["tier"], "built")


if __name__ == "__main__":
    main()
