import json
import os

from kiln_test_case import CALL, KilnTestCase, changed, main

OTHER = changed("params.eps", 1e-3)
CUDA = ["--arch", "90"]


class PacksTest(KilnTestCase):
    def calls(self, *calls):
        return self.write("calls.jsonl", "".join(json.dumps(call) + "\n" for call in calls))

    def export(self, name="a.kpack", extra=(), **options):
        return self.ok("cache", "export", self.path(name), *extra, **options)

    def fresh(self, **env):
        """An environment with a cache folder that holds nothing."""
        return {"KILN_CACHE_DIR": self.path("fresh"), **env}

    def test_a_pack_serves_where_there_is_no_toolkit_and_compiling_is_forbidden(self):
        self.ok("warm", CALL, *CUDA)
        self.export()
        env = self.fresh(KILN_CACHE_LAYERS=self.path("a.kpack"), KILN_COMPILE="forbid",
                         KILN_NVRTC="/nowhere/libnvrtc.so", CUDA_HOME="/nowhere")
        report = self.ok("warm", CALL, *CUDA, env=env)
        self.assertEqual((report["built"], report["hits"]["layer"]), (0, 1))
        report = self.ok("check", "--calls", self.calls(CALL), *CUDA, env=env)
        self.assertEqual((report["missing"], report["failed"]), (0, 0))

    def test_the_same_calls_make_the_same_pack(self):
        for cache, calls in [("one", [CALL, OTHER]), ("two", [OTHER, CALL])]:
            env = {"KILN_CACHE_DIR": self.path(cache)}
            for call in calls:
                self.ok("warm", call, *CUDA, env=env)
            self.export(cache + ".kpack", env=env)
        with open(self.path("one.kpack"), "rb") as one, open(self.path("two.kpack"), "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_a_pack_for_calls_holds_what_they_need_and_nothing_else(self):
        for call in (CALL, OTHER):
            for arch in ("80", "90"):
                self.ok("warm", call, "--arch", arch)
        calls = self.calls(CALL)
        exported = self.export("calls.kpack", extra=["--calls", calls, *CUDA])
        self.assertEqual(exported["entries"], 1)
        self.ok("check", "--calls", calls, *CUDA, "--pack", self.path("calls.kpack"))
        self.assertEqual(self.export("all.kpack")["entries"], 4)
        # From the layers too, and byte for byte the same.
        env = self.fresh(KILN_CACHE_LAYERS=self.path("all.kpack"))
        self.export("again.kpack", extra=["--calls", calls, *CUDA], env=env)
        with open(self.path("calls.kpack"), "rb") as one, open(self.path("again.kpack"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        self.refused(3, "no tier has", "cache", "export", self.path("gap.kpack"), "--calls", calls, "--arch", "100")
        self.assertFalse(os.path.exists(self.path("gap.kpack")))
        self.assertEqual(self.kiln("cache", "export", self.path("x.kpack"), *CUDA).code, 2)

    def test_check_lists_what_a_pack_lacks(self):
        self.ok("warm", CALL, *CUDA)
        self.export()
        calls = self.calls(CALL, changed("inputs.x.dtype", "bfloat16", changed("inputs.weight.dtype", "bfloat16",
                           changed("inputs.bias.dtype", "bfloat16"))))
        result = self.kiln("check", "--calls", calls, *CUDA, "--pack", self.path("a.kpack"), "--json")
        self.assertEqual(result.code, 3, result.err)
        self.assertEqual((result.json["calls"], result.json["missing"]), (2, 1))
        self.assertEqual(result.json["hits"]["layer"], 1)
        self.assertIn("calls.jsonl:2", result.json["failures"][0]["where"])
        self.refused(3, "must be a pack that can be used", "check", "--calls", calls, *CUDA, "--pack", calls)

    def test_why_names_the_field_that_differs(self):
        self.ok("warm", CALL, *CUDA)
        hit = self.ok("why", CALL, *CUDA)
        self.assertEqual((hit["tier"], hit["nearest"], hit["differs"]), ("disk", None, []))
        miss = self.ok("why", CALL, "--arch", "80")
        self.assertIsNone(miss["tier"])
        self.assertEqual(miss["nearest"], hit["key"])
        self.assertIn({"field": "target", "want": "sm_80", "have": hit["target"]}, miss["differs"])
        empty = self.ok("why", CALL, *CUDA, env=self.fresh())
        self.assertIsNone(empty["nearest"])

    def test_signed_packs(self):
        self.ok("warm", CALL, "--device", "cpu")
        trusted = self.ok("cache", "keygen", self.path("key"))["public_key"]
        self.refused(3, "File exists", "cache", "keygen", self.path("key"))
        self.export("plain.kpack")
        exported = self.export("signed.kpack", env={"KILN_SIGNING_KEY": self.path("key")})
        self.assertEqual(exported["signed_by"], trusted)
        with_key = self.fresh(KILN_TRUSTED_KEYS=trusted)
        self.refused(3, "must be signed by a trusted key, got none", "cache", "import", self.path("plain.kpack"),
                     env=with_key)
        # Code for this very process: from a signed pack, never from another.
        self.assertEqual(self.ok("cache", "import", self.path("plain.kpack"), env=self.fresh())["refused"], 1)
        self.assertEqual(self.ok("cache", "import", self.path("signed.kpack"), env=with_key)["entries"], 1)
        report = self.ok("warm", CALL, "--device", "cpu", env=with_key)
        self.assertEqual((report["built"], report["hits"]["disk"]), (0, 1))

    def test_an_old_or_foreign_pack_is_skipped_with_a_reason(self):
        self.ok("warm", CALL, *CUDA)
        self.export()
        with open(self.path("a.kpack"), "r+b") as file:
            file.seek(8)
            file.write(b"\x09")
        result = self.kiln("warm", CALL, *CUDA, "--json", env=self.fresh(KILN_CACHE_LAYERS=self.path("a.kpack")))
        self.assertEqual((result.code, result.json["built"]), (0, 1))
        self.assertIn("format version must be 1, got 9", result.err)

    def test_damage_that_only_the_fields_have_is_told(self):
        self.ok("warm", CALL, *CUDA)
        self.export()
        with open(self.path("a.kpack"), "rb") as file:
            pack = bytearray(file.read())
        at = pack.index(b"extern \"C\"")  # of a source
        pack[at] ^= 255
        with open(self.path("bad.kpack"), "wb") as file:
            file.write(pack)
        result = self.kiln("check", "--calls", self.calls(CALL), *CUDA, "--pack", self.path("bad.kpack"), env=self.fresh())
        self.assertEqual(result.code, 3)
        self.assertIn("must have its checksum, got damaged bytes", result.err)

    def test_gc_keeps_the_limit(self):
        self.ok("warm", CALL, *CUDA)
        self.ok("warm", OTHER, *CUDA)
        entries = self.ok("cache", "stats")["entries"]
        self.assertEqual(self.ok("cache", "gc")["evicted"], 0)
        report = self.ok("cache", "gc", "--max-bytes", "1")
        self.assertEqual((report["evicted"], report["entries"], report["bytes"]), (entries, 0, 0))
        self.refused(2, "--max-bytes", "cache", "gc", "--max-bytes", "much")

    def test_verify_compiles_a_sample_again(self):
        self.ok("warm", CALL, *CUDA)
        self.ok("warm", CALL, "--device", "cpu")
        report = self.ok("cache", "verify", "--rebuild", "100%")
        self.assertEqual((report["entries"], report["rebuilt"], report["differs"]), (2, 2, []))
        self.assertEqual(self.ok("cache", "verify", "--rebuild", "1%")["rebuilt"], 1)
        self.assertEqual(self.ok("cache", "verify")["rebuilt"], 0)
        self.refused(2, "--rebuild must be", "cache", "verify", "--rebuild", "120%")


if __name__ == "__main__":
    main()
