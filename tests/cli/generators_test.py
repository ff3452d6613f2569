import json

from kiln_test_case import CALL, KilnTestCase, changed, main

MANY = {
    "op": "LayerNormFwdOp",
    "for": {"n": [64, 128]},
    "params": {"normalized_shape": ["$n"]},
    "inputs": {"x": {"dtype": ["float16", "bfloat16"], "shape": [{"from": 1, "to": 64, "times": 2}, "$n"]}},
}

class GeneratorsTest(KilnTestCase):
    def test_a_dry_run_counts_what_a_run_then_does(self):
        dry = self.ok("warm", MANY, "--arch", "90", "--dry-run")
        self.assertTrue(dry["dry_run"])
        self.assertEqual((dry["calls"], dry["built"], dry["compiled"]), (28, 0, 0))
        self.assertEqual((dry["identities"], dry["missing"]), (4, 4))
        self.assertEqual(self.ok("cache", "stats")["entries"], 0)
        done = self.ok("warm", MANY, "--arch", "90")
        self.assertEqual((done["calls"], done["identities"], done["built"]), (28, dry["identities"], dry["missing"]))
        dry = self.ok("warm", MANY, "--arch", "90", "--dry-run")
        self.assertEqual((dry["missing"], dry["hits"]["disk"]), (0, 4))
        self.assertIn("0 to be built, 4 from disk", self.kiln("warm", MANY, "--arch", "90", "--dry-run").out)

    def test_what_is_to_be_built_is_said_before_it_is(self):
        err = self.kiln("warm", MANY, "--arch", "90").err.splitlines()
        self.assertIn("28 calls on 1 boards need 4 kernels", err[0])
        self.assertRegex(err[1], r"^\[1/4\] layer_norm\w* for h200, LayerNormFwdOp \(n=\d+, .*\): built$")

    def test_the_limit_is_raised_on_purpose(self):
        self.refused(2, "at most 27 more: got 28", "warm", MANY, "--arch", "90", "--dry-run", "--max-calls", "27")
        endless = changed("inputs.x.shape", [{"from": 1, "to": 10**15}, 128])
        self.refused(2, "got 1000000000000000", "warm", endless, "--arch", "90")
        many = changed("inputs.x.shape", [{"from": 1, "to": 10001}, 128])
        self.refused(2, "--max-calls", "warm", many, "--arch", "90", "--dry-run")
        report = self.ok("warm", many, "--arch", "90", "--dry-run", "--max-calls", "20000")
        self.assertEqual(report["calls"], 10001)

    def test_faults_name_the_line_and_the_combination(self):
        file = self.write("calls.jsonl", "# ok\n" + '{"op":"LayerNormFwdOp","params":{"normalized_shape":[128]},'
                          '"inputs":{"x":{"dtype":"float16","shape":[1,[128,129]]}}}\n')
        self.refused(2, "calls.jsonl:2: with inputs.x.shape[1]=129", "warm", "--calls", file, "--arch", "90")
        self.refused(2, "A <= B", "warm", changed("inputs.x.shape", [{"from": 9, "to": 1}, 128]), "--arch", "90")
        self.refused(2, "must be one: got 28", "explain", MANY, "--arch", "90")
        self.refused(2, "no use of it", "warm", {**CALL, "for": {"n": [1]}}, "--arch", "90")

    def test_check_reads_them_too(self):

        file = self.write("calls.jsonl", json.dumps(MANY) + "\n")
        self.ok("warm", "--calls", file, "--arch", "90")
        report = self.ok("check", "--calls", file, "--arch", "90")
        self.assertEqual((report["calls"], report["identities"], report["missing"]), (28, 4, 0))

if __name__ == "__main__":
    main()
