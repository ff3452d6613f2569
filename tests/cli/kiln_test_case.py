"""What the tests of the command line share: they run the binary named by --kiln with a cache folder of their own."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

KILN = None

CALL = {
    "op": "LayerNormFwdOp",
    "params": {"normalized_shape": [128], "eps": 1e-5},
    "inputs": {
        "x": {"dtype": "float16", "shape": [16, 128]},
        "weight": {"dtype": "float16", "shape": [128]},
        "bias": {"dtype": "float16", "shape": [128]},
    },
}


def changed(path, value, call=None):
    """A copy of CALL with the field at `path` ("inputs.x.dtype") set; without it when the value is None."""
    copy = json.loads(json.dumps(call or CALL))
    *parents, last = path.split(".")
    place = copy
    for name in parents:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def json(self):
        return json.loads(self.out)


class KilnTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kiln cli test ")  # the space is meant
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = self.path("cache")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self, env=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        environment["KILN_CACHE_DIR"] = self.cache
        environment.update(env or {})
        return environment

    def start_redis(self):
        """A redis-server of the test's own, for the user kiln with the password s3cret. Returns its port."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.redis = subprocess.Popen(
            ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", "/usr/bin/redis-server", "--port", str(port),
             "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--user", "kiln", "on", ">s3cret", "~*", "+@all"],
            stdout=subprocess.DEVNULL)
        self.addCleanup(self.redis.wait)
        self.addCleanup(self.redis.kill)
        for _ in range(3000):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.01)
        return port

    def machine(self, name, port, **env):
        """The environment of a machine with a cache folder of its own, before that store."""
        return {"KILN_CACHE_DIR": self.path(name), "KILN_CACHE_REMOTE_TIMEOUT": "30",
                "KILN_CACHE_REMOTE": f"redis://kiln:s3cret@127.0.0.1:{port}/0", **env}

    def kiln(self, *words, stdin=None, env=None, **popen):
        words = [json.dumps(word) if isinstance(word, dict) else str(word) for word in words]
        popen.setdefault("stdout", subprocess.PIPE)
        return Result(
            subprocess.run(
                [KILN, *words], input=stdin, env=self.environment(env), stderr=subprocess.PIPE, text=True, timeout=300, **popen
            )
        )

    def start(self, *words, env=None):
        """The same beside others; `finish` waits for it and returns its JSON."""
        return subprocess.Popen(
            [KILN, *words], env=self.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err + out)
        return json.loads(out)

    def ok(self, *words, **options):
        """Runs with --json, which must succeed and print one JSON value and nothing else."""
        result = self.kiln(*words, "--json", **options)
        self.assertEqual(result.code, 0, result.err + result.out)
        return result.json

    def refused(self, code, fragment, *words, **options):
        """Runs with and without --json: both must end with `code` and say `fragment`."""
        plain = self.kiln(*words, **options)
        self.assertEqual(plain.code, code, plain.err + plain.out)
        self.assertIn(fragment, plain.err)
        self.assertEqual(plain.out, "")
        result = self.kiln(*words, "--json", **options)
        self.assertEqual(result.code, code)
        self.assertIn(fragment, result.json["error"]["message"])
        self.assertIn(fragment, result.err)
        self.assertTrue(result.json["error"]["kind"])
        return result


def main():
    global KILN
    at = sys.argv.index("--kiln")
    KILN = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    # The tests' module is __main__ and has imported this one by its own name.
    unittest.main(module="__main__", verbosity=1)
