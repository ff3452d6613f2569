"""The fields that docs/command_line.md promises are those that the commands print."""
import json
import os
import re

from kiln_test_case import CALL, KilnTestCase, main

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "command_line.md")


def promised():
    """Command -> the fields of its table."""
    out = {}
    with open(PAGE, encoding="utf-8") as file:
        command = None
        for line in file:
            if line.startswith("#"):
                named = re.match(r"### `kiln (.*)`$", line)
                command = named[1] if named else None
            elif command and line.startswith("| `"):
                out.setdefault(command, set()).update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return out


class JsonFieldsTest(KilnTestCase):
    def commands(self):
        return set(re.search(r"want environment, (.*); got", self.kiln("help", "nosuch").err)[1].split(", "))

    def test_each_command_prints_what_is_promised(self):
        kernel = self.write("kernel.cu", 'extern "C" __global__ void k() {}\n')
        calls = self.write("calls.jsonl", json.dumps(CALL) + "\n")
        self.ok("warm", CALL, "--arch", "90")
        key = self.ok("why", CALL, "--arch", "90")["key"]
        words = {
            "ops": ["LayerNormFwdOp"],
            "explain": [CALL, "--arch", "90"],
            "run": [CALL, "--device", "cpu"],
            "warm": [CALL, "--device", "cpu"],
            "check": ["--calls", calls, "--device", "cpu"],
            "why": [CALL, "--device", "cpu"],
            "tune": [CALL, "--device", "cpu", "--rounds", "3"],
            "compile": [kernel, "--target", "sm_90", "--kernel", "k"],
            "cache stats": [],
            "cache list": [],
            "cache verify": [],
            "cache gc": [],
            "cache export": [self.path("a.kpack")],
            "cache import": [self.path("a.kpack")],
            "cache show": [key],
            "cache keygen": [self.path("release.key")],
            "cache clear": [],
            "tune show": [],
            "tune export": [self.path("winners.json")],
            "tune import": [self.path("winners.json")],
            "tune clear": [],
            "doctor": [],
        }
        self.assertEqual(set(words), set(promised()))
        # What prints no JSON: text for a shell, a person or man.
        self.assertEqual(self.commands() - set(promised()), {"cache", "bench", "help", "completion", "man"})
        for command, fields in promised().items():
            report = self.ok(*command.split(), *words[command])
            self.assertEqual(set(report), fields, command)

    def test_items_of_lists_have_the_fields_that_are_promised(self):
        row = self.ok("explain", CALL, "--arch", "90")["plan"][0]
        self.assertEqual(list(row), ["board", "interface", "call", "chosen", "error", "implementations", "identity",
                                     "identity_text", "config", "programs"])
        self.assertEqual(set(row["implementations"][0]), {"key", "verdict", "reason", "origin"})
        self.assertEqual(set(row["programs"][0]), {"source", "target", "key", "tier"})
        report = self.ok("run", CALL, "--device", "cpu")
        self.assertEqual(set(report["kernels"][0]),
                         {"interface", "chosen", "identity", "identity_text", "keys", "tiers"})
        self.assertEqual(set(report["seconds"]), {"open", "fill", "build", "load", "run", "host"})


if __name__ == "__main__":
    main()
