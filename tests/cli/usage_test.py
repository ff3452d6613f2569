import json
import os
import resource

from kiln_test_case import CALL, KilnTestCase, changed, main


class UsageTest(KilnTestCase):
    def test_help_and_version_are_quick_and_load_nothing(self):
        self.assertIn("Usage: kiln", self.kiln("--help").out)
        for command in ["ops", "explain", "run", "warm", "compile", "cache", "doctor"]:
            result = self.kiln(command, "--help", env={"KILN_BACKEND_PATH": "/nowhere"})
            self.assertEqual(result.code, 0, command)
            self.assertIn("Usage", result.out)
            self.assertEqual(result.err, "")
        version = self.kiln("--version").out
        self.assertRegex(version, r"^kiln \d+\.\d+\.\d+\nartifact format \d+, pack format \d+, ")
        self.assertRegex(version, r"\nNVRTC \d+\.\d+, /\S+\n$")
        bare = self.kiln("--version", env={"KILN_NVRTC": "/nowhere"})
        self.assertEqual(bare.code, 0)
        self.assertIn("NVRTC not found", bare.out)

    def test_bad_flags_and_commands(self):
        for words in [[], ["bogus"], ["run"], ["run", CALL, "--bogus"], ["warm", "--jobs", "many", CALL], ["cache"],
                      ["cache", "bogus"], ["explain", CALL, "--sm-count"], ["ops", "A", "B"]]:
            self.assertEqual(self.kiln(*words).code, 2, words)
            self.assertTrue(self.kiln(*words, "--json").json["error"]["message"], words)

    def test_a_word_that_is_not_known_is_named(self):
        self.refused(2, "bogus", "bogus")
        self.refused(2, "bogus", "cache", "bogus")
        self.refused(2, "--bord", "explain", "LayerNormFwdOp", changed("op", None), "--bord", "h200")

    def test_every_fault_of_a_call_is_usage_and_named(self):
        explain = lambda call, fragment: self.refused(2, fragment, "explain", call, "--arch", "90")
        explain(changed("op", "SoftmaxOp"), "SoftmaxOp")
        explain(changed("op", None), '"op" must name an op')
        explain(changed("input", {}), '"input"')
        explain(changed("params.epsilon", 1), "epsilon")
        explain(changed("params.normalized_shape", None), "normalized_shape")
        explain(changed("params.normalized_shape", "128"), "normalized_shape")
        explain(changed("params.normalized_shape", [2**70]), "params.normalized_shape")
        explain(changed("params.eps", "small"), "eps")
        explain(changed("inputs.y", {}), '"y"')
        explain(changed("inputs.x", None), "x must be passed")
        explain(changed("inputs.x.dtype", "half"), '"half"')
        explain(changed("inputs.x.dtype", "int8"), "int8")
        explain(changed("inputs.weight.dtype", "float32"), "weight must have the dtype of x")
        explain(changed("inputs.x.shape", []), "want [*B, 128], got []")
        explain(changed("inputs.x.shape", [16, 127]), "got [16, 127]")
        explain(changed("inputs.x.shape", [-1, 128]), "[-1,128]")
        explain(changed("inputs.x.shape", [1] * 8 + [128]), "at most 8")
        explain(changed("inputs.x.shape", [2**62, 128]), "2^63")
        explain(changed("inputs.x.strides", [2**62, 1]), "got float16[16, 128] with strides")
        explain(changed("params.normalized_shape", [-4]), "normalized_shape must hold extents that are not negative: got [-4]")
        explain(changed("inputs.x.shape", [10**30, 128]), "inputs.x.shape")
        explain(changed("inputs.x.align", 3), "inputs.x.align")
        explain(changed("inputs.x.align", 1), "aligned to its elements")
        explain(changed("inputs.x.strides", [1]), "strides")
        explain(changed("outputs", {"y": {"dtype": "float16", "shape": [16, 128], "strides": [256, 1]}}), "y must be contiguous")
        explain(changed("device", "gpu zero"), "gpu zero")

    def test_malformed_json_says_where(self):
        self.refused(2, "line 1, column", "explain", '{"op":"LayerNormFwdOp",}', "--arch", "90")
        self.refused(2, "line 2, column", "explain", '{"op":\n}', "--arch", "90")
        self.refused(2, "line 1", "explain", "{" * 100000, "--arch", "90")

    def test_json_from_outside_ends_no_parser(self):
        deep = "[" * 60000 + "]" * 60000
        self.refused(2, "nested at most 100 deep", "explain", '{"op":"LayerNormFwdOp","foo":' + deep + "}", "--arch", "90")
        self.refused(2, "nested at most 100 deep", "tune", "import", self.write("deep.json", deep))
        line = json.dumps(CALL)
        for text in (line + "\0 garbage", line + "\0" + line):
            self.refused(2, "must be text: got a NUL", "warm", "--arch", "90", "--calls", self.write("nul.jsonl", text + "\n"))

    def test_an_empty_value_is_not_an_option_that_is_absent(self):
        calls = self.write("calls.jsonl", json.dumps(CALL) + "\n")
        self.refused(2, '--pack must not be empty: got ""', "check", "--calls", calls, "--arch", "90", "--pack", "")
        self.refused(2, '--jobs must not be empty: got ""', "warm", CALL, "--arch", "90", "--jobs", "")
        self.refused(2, 'OP must not be empty: got ""', "ops", "")

    def test_output_that_is_lost_is_no_success(self):
        for words in (["ops"], ["--help"], ["cache", "stats", "--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = self.kiln(*words, stdout=full)
            self.assertEqual(result.code, 3, words)
            self.assertIn("stdout must take all that is printed: No space left on device", result.err)
        # A file opened later must not take the place of a stdout that is closed.
        trace = self.path("trace.json")
        self.assertEqual(self.kiln("warm", CALL, "--arch", "90", stdout=None, env={"KILN_TRACE": trace},
                                   preexec_fn=lambda: os.close(1)).code, 3)
        with open(trace, encoding="utf-8") as file:
            self.assertNotIn("identities:", file.read())

    def test_warm_wants_a_cache_that_keeps_what_it_builds(self):
        file = self.write("file", "")
        self.refused(3, "there must be a disk cache in force", "warm", CALL, "--arch", "90", env={"KILN_CACHE_DIR": file})

    def test_messages_do_not_command_a_terminal(self):
        result = self.kiln("explain", {"op": "a\x1b[31mred"}, "--arch", "90")
        self.assertIn("a\\x1b[31mred", result.err)

    def test_warm_that_keeps_nothing_is_no_success(self):
        many = {"op": "LayerNormFwdOp", "params": {"normalized_shape": ["$n"]}, "for": {"n": [1024, 2048, 4096]},
                "inputs": {name: {"dtype": "float16", "shape": shape} for name, shape in
                           (("x", [16, "$n"]), ("weight", ["$n"]), ("bias", ["$n"]))}}
        full = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))  # no file may be larger
        result = self.kiln("warm", many, "--arch", "90", "--json", **full)
        self.assertEqual(result.code, 3, result.err)
        self.assertEqual((result.json["built"], result.json["not_kept"]), (3, 3))
        plain = self.kiln("warm", many, "--arch", "90", **full)
        self.assertEqual(plain.code, 3, plain.err)
        self.assertIn("not kept: 3 artifacts", plain.out)
        self.assertEqual(self.ok("warm", many, "--arch", "90")["not_kept"], 0)

    def test_names_and_values_of_files_command_no_terminal(self):
        """Whatever a calls file holds: in errors, in lists of failures, in progress, in reports, in JSON."""
        red, csi = "\x1b[31m", "\u009b31m"
        file = self.write(f"{red}calls{csi}\x7f.jsonl", json.dumps(changed("params.eps", -1)) + "\n" + json.dumps(CALL) + "\n")
        for words in (["warm", "--arch", "90", "--calls", file], ["check", "--arch", "90", "--calls", file],
                      ["warm", "--arch", "90", "--calls", file + "none"], ["cache", "export", "--calls", file, "--arch", "90", self.path("p")],
                      ["explain", {"op": f"a{red}{csi}"}, "--arch", "90"], ["run", CALL, "--device", f"{red}{csi}"]):
            for more in ([], ["--json"]):
                result = self.kiln(*words, *more)
                self.assertIn(result.code, (2, 3), result.err)
                for out in (result.out, result.err):
                    self.assertNotRegex(out, "[\\x00-\\x08\\x0b-\\x1f\\x7f\\x80-\\x9f]", words)
                self.assertIn("31m", result.err + result.out)
                if more:
                    self.assertTrue(result.json)

    def test_a_long_value_does_not_fill_the_terminal(self):
        for name, call in (("op", {"op": "x" * 10**6}), ("name", changed("x" * 10**6, 1)), ("text", changed("params.eps", "y" * 10**6))):
            file = self.write(name + ".jsonl", json.dumps(call) + "\n")
            result = self.refused(2, name + ".jsonl:1: ", "warm", "--arch", "90", "--calls", file)
            self.assertLess(len(result.err), 2000)
            self.assertLess(len(result.out), 3000)
        result = self.kiln("explain", "LayerNormFwdOp", "{" + "z" * 10**5, "--arch", "90")
        self.assertLess(len(result.err), 2000)

    def test_values_of_options_say_what_they_must_be(self):
        self.refused(2, "must be at least 0: got inf", "tune", CALL, "--devices", "cpu", "--budget", "inf")
        self.refused(2, "--max-calls: must be at least 1: got x", "warm", CALL, "--arch", "90", "--max-calls", "x")
        self.refused(2, "--seed: must be at least 0: got -1", "tune", CALL, "--devices", "cpu", "--seed=-1")
        self.refused(2, "must hold at most 4096 bytes", "cache", "export", self.path("p"), "--sign-key", "/dev/zero")
        self.refused(2, "--jobs: must be a number from 0 to 4096: got many", "warm", CALL, "--arch", "90", "--jobs", "many")

    def test_a_file_that_is_not_there_is_wrong_usage(self):
        calls = self.write("calls.jsonl", json.dumps(CALL) + "\n")
        for words in (("check", "--calls", calls, "--arch", "90", "--pack"), ("cache", "import"), ("tune", "import"),
                      ("warm", "--arch", "90", "--calls"), ("tune", "--device", "cpu", "--calls"),
                      ("compile", "--target", "sm_90")):
            self.refused(2, "No such file", *words, self.path("none"))
        self.refused(2, "PACK must be the name of a file to write: got a folder", "cache", "export", self.folder)

    def test_kernels_with_a_cpp_name_are_shown_as_written(self):
        file = self.write("kernel.cu", "template <class T> __global__ void k(T*) {}\ntemplate __global__ void k<float>(float*);\n")
        self.refused(3, "it has void k<float>(float*)", "compile", file, "--target", "sm_90", "--kernel", "k")

    def test_an_object_over_several_lines_gets_a_hint(self):
        calls = self.write("calls.jsonl", json.dumps(CALL, indent=2))
        self.refused(2, "calls.jsonl:1: ", "warm", "--calls", calls, "--arch", "90")
        self.refused(2, "a calls file holds one object a line", "warm", "--calls", calls, "--arch", "90")

    def test_an_op_and_its_object_are_two_words(self):
        self.refused(2, "must be followed by its JSON object: got []", "explain", "LayerNormFwdOp", "[]", "--arch", "90")
        self.refused(2, "must be followed by its JSON", "explain", "LayerNormFwdOp", "--arch", "90")
        self.refused(2, "want LayerNormFwdOp", "explain", "LayerNormFwdOp", changed("op", "Other"), "--arch", "90")
        self.refused(2, "NoSuchOp", "explain", "NoSuchOp", "--arch", "90")
        self.refused(2, "must be one", "explain", CALL, CALL, "--arch", "90")

    def test_unknown_boards_and_archs(self):
        self.refused(2, "h9000", "explain", CALL, "--board", "h9000")
        self.refused(2, "h200", "explain", CALL, "--board", "h9000")  # lists those there are
        for arch in ["12", "sm_42", "sm_", "ninety", "-1", "99999999999"]:
            self.refused(2, arch, "explain", CALL, f"--arch={arch}")
        self.refused(2, "--board", "explain", CALL, "--arch", "h200")
        self.refused(2, "--board, --arch or --device", "explain", CALL)

    def test_facts_of_a_device_are_such_as_a_device_could_have(self):
        for option, most in (("--sm-count", 1024), ("--smem", 1 << 20)):
            for value in (0, -4, most + 1, 10**30, "1e3", "many"):
                self.refused(2, f"{option}: must be a number from 1 to {most}: got {value}", "explain", CALL, "--arch", "90",
                             f"{option}={value}")
            self.refused(2, "must go with --board or --arch", "explain", CALL, "--device", "cpu", option, "8")

    def test_a_calls_file_that_is_too_large_is_raised_on_purpose(self):
        line = json.dumps(CALL) + "\n"
        calls = self.write("calls.jsonl", line * 20)
        for words in (["warm", "--dry-run"], ["check"], ["cache", "export", self.path("p")], ["tune", "--device", "cpu"]):
            where = [] if words[0] == "tune" else ["--arch", "90"]
            self.refused(2, "must hold at most 1024 bytes: got more; raise the limit if it is meant (--max-size)", *words, *where,
                         "--calls", calls, "--max-size", "1K")
        self.refused(2, "at most 67108864 bytes", "warm", "--arch", "90", "--calls", "/dev/zero")
        self.refused(2, "a size must be a number of bytes", "warm", "--arch", "90", "--calls", calls, "--max-size", "much")
        self.assertEqual(self.ok("warm", "--dry-run", "--arch", "90", "--calls", calls, "--max-size", "1M")["calls"], 20)

    def test_what_the_op_itself_refuses(self):
        result = self.kiln("explain", changed("params.eps", -1), "--arch", "90", "--json")
        self.assertEqual(result.code, 2, result.out)
        self.assertIn("eps", result.json["error"]["message"])


if __name__ == "__main__":
    main()
