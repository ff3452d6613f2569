import os

from kiln_test_case import CALL, KilnTestCase, changed, main


class CacheTest(KilnTestCase):
    def fill(self):
        self.ok("warm", CALL, changed("params.eps", 1e-3), "--device", "cpu")

    def files(self):
        return sorted(
            os.path.join(folder, name) for folder, _, names in os.walk(self.cache) for name in names if name.endswith(".kiln")
        )

    def test_stats_have_the_fields_scripts_rely_on(self):
        empty = self.ok("cache", "stats")
        for field in ["entries", "bytes", "hits", "misses", "quarantined", "evicted", "errors"]:
            self.assertEqual(empty[field], 0, field)
        self.fill()
        stats = self.ok("cache", "stats")
        self.assertEqual(stats["entries"], 2)
        self.assertEqual(stats["bytes"], sum(os.path.getsize(file) for file in self.files()))

    def test_list_and_show(self):
        self.fill()
        entries = self.ok("cache", "list")["entries"]
        self.assertEqual(len(entries), 2)
        key = entries[0]["key"]
        shown = self.ok("cache", "show", key[:20])
        self.assertEqual(shown["key"], key)
        fields = {field["name"]: field["value"] for field in shown["source_fields"]}
        self.assertEqual(fields["source_name"], entries[0]["source"])
        self.assertEqual(fields["target"], entries[0]["target"])
        self.assertIn("bytes, xxh3", fields["source"])
        self.assertTrue(shown["compiler_fields"])
        whole = {field["name"]: field["value"] for field in self.ok("cache", "show", key, "--text")["source_fields"]}
        self.assertIn("#include", whole["source"])
        self.refused(2, "which 0 have", "cache", "show", "0" * 64)

    def test_an_artifact_is_compiled_again_from_its_key(self):
        self.fill()
        key = self.ok("cache", "list")["entries"][0]["key"]
        report = self.ok("compile", key, "--output", self.path("image"))
        self.assertEqual(report["bytes"], os.path.getsize(self.path("image")))
        self.assertEqual(report["bytes"], self.ok("cache", "show", key)["image_bytes"])
        self.refused(3, "key", "compile", "0" * 64)

    def test_verify_finds_a_flipped_bit_and_a_run_builds_it_again(self):
        self.fill()
        before = self.ok("cache", "verify")
        self.assertEqual((before["entries"], before["damaged"]), (2, []))
        victim = self.files()[0]
        with open(victim, "r+b") as file:
            file.seek(100)
            byte = file.read(1)[0]
            file.seek(100)
            file.write(bytes([byte ^ 1]))
        result = self.kiln("cache", "verify", "--json")
        self.assertEqual(result.code, 3)
        (damaged,) = result.json["damaged"]
        self.assertEqual((damaged["path"], damaged["set_aside"]), (victim, True))
        self.assertFalse(os.path.exists(victim))
        report = self.ok("warm", CALL, changed("params.eps", 1e-3), "--device", "cpu")
        self.assertEqual((report["built"], report["hits"]["disk"]), (1, 1))
        stats = self.ok("cache", "stats")
        self.assertEqual((stats["entries"], stats["quarantined"]), (2, 1))
        self.assertEqual(self.ok("cache", "verify")["damaged"], [])

    def test_clear(self):
        self.fill()
        self.assertEqual(self.ok("cache", "clear")["removed"], 2)
        self.assertEqual(self.ok("cache", "stats")["entries"], 0)
        self.assertEqual(self.ok("cache", "clear")["removed"], 0)

    def test_without_a_folder(self):
        self.refused(3, "KILN_CACHE_DIR", "cache", "stats", env={"KILN_CACHE_DIR": "/proc/no/such/folder"})


class CompileTest(KilnTestCase):
    def test_a_file(self):
        source = self.write("add.cpp", 'extern "C" int add(int a, int b) { return a + b + EXTRA; }\n')
        report = self.ok("compile", source, "--target", "x86-64", "--define", "EXTRA=1", "--kernel", "add")
        self.assertGreater(report["bytes"], 0)
        self.assertEqual(report["kernels"][0]["name"], "add")

    def test_a_cuda_file_without_a_device(self):
        source = self.write("fill.cu", 'extern "C" __global__ void fill(float* x) { x[threadIdx.x] = VALUE; }\n')
        report = self.ok("compile", source, "--target", "sm_90a", "--define", "VALUE=1.5f", "--kernel", "fill")
        self.assertEqual(report["kind"], "cubin")

    def test_faults(self):
        broken = self.write("broken.cpp", "int f( {\n")
        result = self.refused(3, "broken.cpp", "compile", broken, "--target", "x86-64")
        self.assertEqual(result.json["error"]["kind"], "CompileError")
        self.refused(2, "no such file.cu", "compile", "no such file.cu", "--target", "sm_90")
        self.refused(2, "--target", "compile", broken)


if __name__ == "__main__":
    main()
