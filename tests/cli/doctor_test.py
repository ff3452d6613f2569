import os
import re
import resource
import signal
import subprocess
import unittest

from kiln_test_case import CALL, KilnTestCase, main

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def no_file_may_grow():
    """As on a full disk: every write to a file fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


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

    def bad(self, name, *fragments, env=None, **options):
        """Runs with trouble: the check is not ok, says what is wrong and what to do."""
        check = self.checks(env=env, **options)[name]
        self.assertFalse(check["ok"], check)
        for fragment in fragments:
            self.assertIn(fragment, check["found"] + " -> " + check["advice"])
        return check

    def script(self, text, mode=0o755):
        path = self.write("worker", "#!/bin/sh\n" + text)
        os.chmod(path, mode)
        return {"KILN_COMPILE_WORKER": path}

    def test_bad_days_of_compiling(self):
        compiling = self.checks()["compiling"]
        self.assertTrue(compiling["ok"], compiling)
        self.assertIn("kiln-compile-worker", compiling["found"])
        self.assertIn("KILN_JOBS=0", self.checks(env={"KILN_JOBS": "0"})["compiling"]["found"])
        self.bad("compiling", "/nowhere/worker", "No such file", "KILN_COMPILE_WORKER",
                 env={"KILN_COMPILE_WORKER": "/nowhere/worker"})
        self.bad("compiling", "Permission denied", "in the process itself", env=self.script("exit 0\n", mode=0o644))
        self.bad("compiling", "ended with status 3", "garbage", env=self.script("echo garbage\nexit 3\n"))
        self.bad("compiling", "signal 9", env=self.script("kill -9 $$\n"))
        self.bad("compiling", "in the process itself", "KILN_COMPILE_WORKER",
                 env={**self.script("exec sleep 100\n"), "KILN_COMPILE_LIMIT": "1"})
        self.bad("compiling", "in the process itself", env=self.script("cat /dev/zero | head -c 100000 >&0\n"))

    def test_bad_days_of_nvrtc(self):
        self.bad("nvrtc", "/nowhere/libnvrtc.so", "CUDA Toolkit", env={"KILN_NVRTC": "/nowhere/libnvrtc.so"})
        text = self.write("libnvrtc.so", "no library\n")
        self.assertNotIn("compiling", self.checks(env={"KILN_NVRTC": text}))
        self.bad("nvrtc", text, "CUDA Toolkit", env={"KILN_NVRTC": text})

    def library(self, name, text):
        """A shared object made of C."""
        path, source = self.path(name), self.write(name + ".c", text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
        return path

    def test_an_nvrtc_that_is_too_old(self):
        with open(os.path.join(TREE, "jit", "nvrtc_functions.inc"), encoding="utf-8") as file:
            names = re.findall(r"^KILN_NVRTC_FUNCTION\((\w+)\)", file.read(), re.MULTILINE)
        stubs = "".join(f"int {name}(void) {{ return 1; }}\n" for name in names if name != "nvrtcVersion")
        old = self.library("libnvrtc.so", stubs + "int nvrtcVersion(int* a, int* b) { *a = 11; *b = 8; return 0; }\n")
        self.bad("nvrtc", "must be 12.8 or newer", "is 11.8", "install the CUDA Toolkit 12.8", env={"KILN_NVRTC": old})

    def test_a_device_that_is_newer_than_the_toolkit(self):
        self.library("libcuda.so.1", """
            #include <string.h>
            static int fine(void) { return 0; }
            static int count(int* n) { *n = 1; return 0; }
            static int name(char* text, int size, int device) { strncpy(text, "NVIDIA X999", size); return 0; }
            static int memory(unsigned long* bytes, int device) { *bytes = 1ul << 37; return 0; }
            static int attribute(int* value, int which, int device) {
              *value = which == 75 ? 19 : which == 76 ? 0 : 128;  /* compute capability 19.0 */
              return 0;
            }
            int cuDriverGetVersion(int* version) { *version = 19000; return 0; }
            int cuGetProcAddress_v2(const char* symbol, void** found, int version, unsigned long flags, int* status) {
              *found = (void*)fine;
              if (!strcmp(symbol, "cuDeviceGetCount")) *found = (void*)count;
              if (!strcmp(symbol, "cuDeviceGetName")) *found = (void*)name;
              if (!strcmp(symbol, "cuDeviceTotalMem")) *found = (void*)memory;
              if (!strcmp(symbol, "cuDeviceGetAttribute")) *found = (void*)attribute;
              *status = 0;
              return 0;
            }
            """)
        self.bad("arch of cuda:0", "compiles nothing for arch 190", "install a CUDA Toolkit that knows it", "serve from a pack",
                 env={"LD_LIBRARY_PATH": self.folder})

    def test_bad_days_of_the_cache(self):
        def folder(name, mode=0o700):
            os.mkdir(self.path(name))
            os.chmod(self.path(name), mode)
            return {"KILN_CACHE_DIR": self.path(name)}

        self.bad("cache", "must not be writable by group or others", "KILN_CACHE_DIR", env=folder("open", 0o777))
        os.symlink(self.path("open"), self.path("link"))
        self.bad("cache", "cannot be used", env={"KILN_CACHE_DIR": self.path("link")})
        self.bad("cache", "cannot be used", env={"KILN_CACHE_DIR": self.write("file", "")})
        self.bad("cache", "cannot be used", "name too long", env={"KILN_CACHE_DIR": self.path("x" * 300)})
        full = self.checks(env=folder("full"), preexec_fn=no_file_may_grow)["cache"]
        self.assertFalse(full["ok"])
        self.assertIn("cannot be written", full["found"])
        nowhere = {"KILN_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": ""}
        self.bad("cache", "no folder is named", env=nowhere)

    def test_damage_is_told(self):
        self.ok("warm", CALL, "--device", "cpu")
        self.assertNotIn("cache damage", self.checks())
        for folder, _, files in os.walk(os.path.join(self.cache, "v1")):
            for file in files:
                with open(os.path.join(folder, file), "r+b") as artifact:
                    artifact.seek(100)
                    artifact.write(b"damaged")
        self.ok("warm", CALL, "--device", "cpu")
        self.bad("cache damage", "1 files were set aside", "kiln cache verify")

    def test_layers_are_told_used_or_not(self):
        self.ok("warm", CALL, "--arch", "90")
        pack, text = self.path("a.kpack"), self.write("text", "no pack at all, and long enough to look at\n" * 9)
        self.ok("cache", "export", pack)
        layers = {"KILN_CACHE_LAYERS": f"{pack}:{text}:/nowhere.kpack"}
        checks = self.checks(env=layers)
        self.assertTrue(checks["layer " + pack]["ok"])
        self.assertIn("1 artifacts", checks["layer " + pack]["found"])
        self.assertFalse(checks["layer " + text]["ok"])
        self.assertIn("No such file", checks["layer /nowhere.kpack"]["found"])
        signed = {**layers, "KILN_TRUSTED_KEYS": self.ok("cache", "keygen", self.path("key"))["public_key"]}
        self.bad("layer " + pack, "must be signed", env=signed)

    def test_variables_that_nobody_reads_and_values_that_are_not_understood(self):
        self.assertTrue(self.checks()["environment"]["ok"])
        self.bad("environment", "KILN_CACHE_DIRS (did you mean KILN_CACHE_DIR?)", "kiln help environment",
                 env={"KILN_CACHE_DIRS": "x"})
        self.bad("environment", "KILN_COMPILE wants one of block, async, forbid: got never", env={"KILN_COMPILE": "never"})
        self.bad("environment", "KILN_LOG wants one of off, select: got all", env={"KILN_LOG": "all"})
        self.bad("environment", "KILN_LOG_LEVEL wants one of", "got loud", env={"KILN_LOG_LEVEL": "loud"})
        self.bad("environment", "KILN_JOBS", "got many", env={"KILN_JOBS": "many"})
        self.bad("recorded calls", "/nowhere/calls", "KILN_RECORD_CALLS", env={"KILN_RECORD_CALLS": "/nowhere/calls"})
        there = self.path("calls.jsonl")
        self.assertTrue(self.checks(env={"KILN_RECORD_CALLS": there})["recorded calls"]["ok"])
        self.assertFalse(os.path.exists(there))

    def test_all_of_it_fits_on_a_screen(self):
        out = self.kiln("doctor").out.splitlines()
        self.assertLess(len(out), 40)
        self.assertRegex(out[-1], r"^all is well$|^\d+ of \d+ are not as they could be")

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
