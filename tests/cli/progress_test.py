import json
import os
import pty
import signal
import subprocess

import kiln_test_case
from kiln_test_case import KilnTestCase, main


def norms(*lengths):
    return {
        "op": "LayerNormFwdOp",
        "for": {"n": list(lengths)},
        "params": {"normalized_shape": ["$n"]},
        "inputs": {"x": {"dtype": "float16", "shape": [4, "$n"]}},
    }


class ProgressTest(KilnTestCase):
    def terminal_environment(self, **env):
        clean = self.environment({"TERM": "xterm"})
        clean.pop("NO_COLOR", None)
        return {**clean, **env}

    def on_a_terminal(self, *words, **env):
        """Exit code and what a terminal at standard error receives."""
        ours, theirs = pty.openpty()
        words = [json.dumps(w) if isinstance(w, dict) else w for w in words]
        process = subprocess.Popen([kiln_test_case.KILN, *words], env=self.terminal_environment(**env), stderr=theirs,
                                   stdout=subprocess.DEVNULL)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the last writer has closed it
                break
            if not part:
                break
            text += part
        os.close(ours)
        return process.wait(timeout=300), text.decode()

    def test_a_terminal_gets_one_line_that_is_written_over(self):
        lengths = [32 * i for i in range(1, 13)]
        code, text = self.on_a_terminal("warm", norms(*lengths), "--arch", "90", "--jobs", "1")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"\[0/12\]: layer_norm\w* for h200")
        self.assertRegex(text, r"\[\d+/12\] \d+\.\d/s, \d+ s left: layer_norm\w* for h200")
        self.assertRegex(text, r"\[12/12\] ")
        self.assertEqual(text.count("\n"), 1)  # only the line before the first
        self.assertTrue(text.endswith("\r\x1b[K"), repr(text[-40:]))

    def failing(self):
        name = self.ok("explain", norms(64), "--arch", "90")["plan"][0]["programs"][0]["source"]
        path = os.path.join(self.path("kernels"), name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("#error on purpose\n")
        return {"KILN_KERNEL_PATH": self.path("kernels")}

    def test_failures_stay_on_the_screen_red_unless_no_color_is_set(self):
        env = self.failing()
        code, text = self.on_a_terminal("warm", norms(64), "--arch", "90", **env)
        self.assertEqual(code, 3, text)
        self.assertIn("\x1b[31m[1/1] ", text)
        code, text = self.on_a_terminal("warm", norms(64), "--arch", "90", **env, NO_COLOR="1")
        self.assertEqual(code, 3, text)
        self.assertIn("[1/1] ", text)
        self.assertNotIn("\x1b[31m", text)

    def test_elsewhere_there_are_plain_lines(self):
        err = self.kiln("warm", norms(64, 128), "--arch", "90").err
        self.assertNotIn("\x1b", err)
        self.assertNotIn("\r", err)
        self.assertEqual(len(err.splitlines()), 3, err)

    def interrupted(self, signal_number, code):
        lengths = [32 * i for i in range(1, 41)]
        words = ["warm", json.dumps(norms(*lengths)), "--arch", "90", "--jobs", "1", "--json"]
        process = subprocess.Popen([kiln_test_case.KILN, *words], env=self.terminal_environment(), stderr=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        while "[1/" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal_number)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, err)
        report = json.loads(out)
        self.assertTrue(report["interrupted"])
        self.assertGreater(report["built"], 0)
        self.assertGreater(report["not_done"], 0)
        self.assertEqual(report["failed"], 0)
        self.assertIn("stopping", err)
        stats = self.ok("cache", "verify")
        self.assertEqual(self.ok("cache", "stats")["entries"], report["built"], stats)
        leftovers = [f for _, _, files in os.walk(self.cache) for f in files if f.endswith((".tmp", ".lease"))]
        self.assertEqual(leftovers, [])
        self.kiln("cache", "clear")

    def test_an_interrupt_ends_it_tidily_and_says_what_was_done(self):
        self.interrupted(signal.SIGINT, 130)
        self.interrupted(signal.SIGTERM, 143)

    def test_who_starts_it_with_interrupts_ignored_is_obeyed(self):
        words = [kiln_test_case.KILN, "warm", json.dumps(norms(64, 128, 256, 512)), "--arch", "90", "--json"]
        process = subprocess.Popen(words, env=self.terminal_environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        while "[1/" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertFalse(json.loads(out)["interrupted"])


if __name__ == "__main__":
    main()
