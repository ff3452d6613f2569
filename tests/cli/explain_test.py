from kiln_test_case import CALL, KilnTestCase, changed, main

VERDICTS = {"chosen", "lower", "refused", "unavailable"}


class ExplainTest(KilnTestCase):
    def test_fields_that_scripts_rely_on(self):
        report = self.ok("explain", CALL, "--device", "cpu")
        self.assertIsNone(report["target"])
        (kernel,) = report["plan"]
        self.assertEqual(kernel["interface"], "layer_norm_fwd")
        self.assertIsNone(kernel["error"])
        self.assertRegex(kernel["identity"], "^[0-9a-f]{32}$")
        keys = {row["key"]: row for row in kernel["implementations"]}
        self.assertEqual(keys[kernel["chosen"]]["verdict"], "chosen")
        for row in kernel["implementations"]:
            self.assertIn(row["verdict"], VERDICTS)
            self.assertEqual(row["reason"] == "", row["verdict"] == "chosen", row)
        (program,) = kernel["programs"]
        self.assertRegex(program["key"], "^[0-9a-f]{64}$")
        self.assertIsNone(program["tier"])

    def test_refused_implementations_say_why(self):
        rows = self.ok("explain", CALL, "--device", "cpu")["plan"][0]["implementations"]
        short = [row for row in rows if row["key"] == "cpu_layer_norm_short"][0]
        self.assertEqual(short["verdict"], "refused")
        self.assertIn("128", short["reason"])

    def test_nothing_is_built(self):
        self.ok("explain", CALL, "--device", "cpu")
        self.assertEqual(self.ok("cache", "stats")["entries"], 0)

    def test_a_built_program_is_found(self):
        self.ok("warm", CALL, "--device", "cpu")
        self.assertEqual(self.ok("explain", CALL, "--device", "cpu")["plan"][0]["programs"][0]["tier"], "disk")

    def test_without_a_compiler_what_would_serve_is_found(self):
        bare = {"KILN_NVRTC": "/nowhere/libnvrtc.so", "CUDA_HOME": "/nowhere"}
        report = self.ok("explain", CALL, "--arch", "90", env=bare)
        self.assertIn("/nowhere/libnvrtc.so", report["boards"][0]["no_compiler"])
        self.assertIsNone(report["plan"][0]["programs"][0]["tier"])
        self.ok("warm", CALL, "--arch", "90")
        self.assertEqual(self.ok("explain", CALL, "--arch", "90", env=bare)["plan"][0]["programs"][0]["tier"], "disk")
        self.assertIn("as where nothing may compile", self.kiln("explain", CALL, "--arch", "90", env=bare).out)

    def test_boards_need_no_device(self):
        report = self.kiln("explain", CALL, "--board", "h200,a100", "--arch", "sm_90a", "--json")
        boards = {board["name"]: board for board in report.json["boards"]}
        self.assertEqual(set(boards), {"h200", "a100"})  # the reference board of 90 is the h200
        self.assertEqual(boards["h200"]["facts"], {"arch": 90, "sm_count": 132, "smem_budget": 232448, "calibration": "h200"})
        self.assertEqual([kernel["board"] for kernel in report.json["plan"]], ["h200", "a100"])

    def test_arch_spellings_mean_the_same(self):
        plans = [self.kiln("explain", CALL, "--arch", arch, "--json").json["plan"] for arch in ["90", "sm_90", "sm_90a"]]
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(plans[0], plans[2])

    def test_facts_can_be_stated(self):
        report = self.kiln("explain", CALL, "--arch", "90", "--sm-count", "114", "--smem", "1024", "--json").json
        self.assertEqual(report["boards"][0]["facts"]["sm_count"], 114)
        self.assertEqual(report["boards"][0]["facts"]["smem_budget"], 1024)
        self.assertEqual(report["boards"][0]["facts"]["calibration"], "sm_90-114sm")

    def test_the_plain_text_names_the_chosen_one(self):
        chosen = self.ok("explain", CALL, "--device", "cpu")["plan"][0]["chosen"]
        self.assertRegex(self.kiln("explain", CALL, "--device", "cpu").out, chosen + r" +chosen")

    def test_dtype_changes_the_identity(self):
        wide = changed("inputs.x.dtype", "float32")
        wide["inputs"]["weight"]["dtype"] = wide["inputs"]["bias"]["dtype"] = "float32"
        identities = {self.ok("explain", call, "--device", "cpu")["plan"][0]["identity"] for call in [CALL, wide]}
        self.assertEqual(len(identities), 2)
        again = self.ok("explain", changed("inputs.x.shape", [5, 128]), "--device", "cpu")["plan"][0]["identity"]
        self.assertIn(again, identities)  # how many rows there are is no fact of the build

    def test_where_nothing_serves_the_answer_is_still_printed(self):
        result = self.kiln("explain", CALL, "--device", "cpu", "--json", env={"KILN_SELECT": "only=cpu_layer_norm_short"})
        self.assertEqual(result.code, 3, result.out)
        (kernel,) = result.json["plan"]
        self.assertIsNone(kernel["chosen"])
        self.assertIsNone(kernel["identity"])
        self.assertTrue(kernel["error"])
        self.assertIn("no implementation serves this call", kernel["message"])


if __name__ == "__main__":
    main()
