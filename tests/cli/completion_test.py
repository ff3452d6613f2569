"""Completion, the manual page and --help are made of one definition, so they say the same."""

import os
import re
import shlex
import subprocess

import kiln_test_case
from kiln_test_case import KilnTestCase, main

COMMANDS = ["ops", "explain", "run", "warm", "compile", "cache stats", "cache list", "cache clear", "cache verify",
            "cache gc", "cache export", "cache import", "cache keygen", "cache show", "why", "check", "doctor",
            "completion", "man"]


class CompletionTest(KilnTestCase):
    def shell(self, *words, stdin=None):
        bin_folder = os.path.dirname(os.path.realpath(kiln_test_case.KILN))
        env = {**os.environ, "PATH": bin_folder + ":" + os.environ["PATH"], "HOME": self.folder,
               "KILN_CACHE_DIR": self.cache}
        done = subprocess.run(words, input=stdin, env=env, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def script(self, shell):
        out = self.kiln("completion", shell).out
        return self.write("completion." + shell, out)

    def bash(self, line):
        words = line.split(" ")
        listed = " ".join(shlex.quote(word) for word in words)
        return self.shell("bash", "-c", f"source {shlex.quote(self.script('bash'))}; COMP_WORDS=({listed}); "
                          f"COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _kiln; printf '%s\\n' \"${{COMPREPLY[@]}}\"").split()

    def fish(self, line):
        out = self.shell("fish", "-c", f"source {shlex.quote(self.script('fish'))}; complete -C {shlex.quote(line)}")
        return [row.split("\t")[0] for row in out.splitlines()]

    def zsh(self, line):
        """The words that the function hands to zsh's own _describe, compadd and _files."""
        words = " ".join(shlex.quote(word) for word in line.split(" "))
        return self.shell("zsh", "-f", "-c", "compdef() { :; }; _files() { print FILES; }\n"
                          "compadd() { shift; print -l -- \"$@\"; }; _describe() { print -l -- \"${list[@]%%:*}\"; }\n"
                          f"source {shlex.quote(self.script('zsh'))}; words=({words}); "
                          f"CURRENT={len(line.split(' '))}; _kiln").split()

    def help_of(self, command):
        return self.kiln(*command.split(), "--help").out

    def options_of(self, command):
        return {name for name in re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", self.help_of(command))}

    def test_each_shell_offers_the_commands_and_options_of_help(self):
        top = set(re.findall(r"(?m)^  ([a-z][\w-]*) ", self.help_of("")))
        self.assertIn("warm", top)
        for shell in [self.bash, self.zsh]:
            self.assertLessEqual(top, set(shell("kiln ")))
        self.assertLessEqual(top, set(self.fish("kiln ")))
        for command in ["warm", "run", "cache export"]:
            options = self.options_of(command)
            self.assertGreater(len(options), 1, command)
            self.assertLessEqual(options | {"--json"}, set(self.bash(f"kiln {command} --")), command)
            self.assertLessEqual(options | {"--json"}, set(self.zsh(f"kiln {command} --")), command)
            self.assertLessEqual(options | {"--json"}, set(self.fish(f"kiln {command} --")), command)

    def test_values_are_offered(self):
        for shell in [self.bash, self.zsh, self.fish]:
            self.assertIn("h200", shell("kiln warm --board h"), shell)
            self.assertIn("export", shell("kiln cache exp"), shell)
            self.assertIn("LayerNormFwdOp", shell("kiln explain Layer"), shell)
        self.write("my_calls.jsonl", "")
        name = self.path("my_calls.jsonl")
        quoted = name.replace(" ", "\\ ")
        self.assertIn("my_calls.jsonl", " ".join(self.fish(f"kiln warm --calls {quoted[:-5]}")))
        self.assertEqual(self.zsh("kiln warm --calls my"), ["FILES"])

    def test_every_command_shows_examples_that_name_it(self):
        for command in COMMANDS:
            text = self.help_of(command)
            self.assertIn("Examples:", text, command)
            self.assertRegex(text, rf"kiln {command}\b", command)
            self.assertIn(f"Usage: kiln {command}", text, command)
            self.assertEqual(self.kiln("help", *command.split()).out, text, command)

    def test_the_manual_page_is_troff_and_whole(self):
        page = self.kiln("man").out
        path = self.write("kiln.1", page)
        text = self.shell("man", "--warnings", "-l", path)
        for command in COMMANDS:
            self.assertIn(f"kiln {command}", text)
            for option in self.options_of(command):
                self.assertIn(option, text, command)

    def test_every_variable_that_is_read_is_in_the_help(self):
        told = self.kiln("help", "environment").out
        source = os.path.join(os.path.dirname(__file__), "..", "..", "runtime", "options.cc")
        with open(source, encoding="utf-8") as file:
            read = set(re.findall(r'"(KILN_[A-Z_]+|CUDA_HOME)"', file.read()))
        self.assertGreater(len(read), 15)
        for name in read:
            self.assertRegex(told, rf"(?m)^{name} ", name)

    def test_what_is_not_there_is_refused(self):
        self.refused(2, "bash, zsh or fish: got tcsh", "completion", "tcsh")
        self.refused(2, "must be such a page", "help", "cache", "bogus")


if __name__ == "__main__":
    main()
