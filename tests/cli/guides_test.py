"""Every `kiln` command that a guide or an example of --help shows is one, and has the options that it is given."""
import glob
import os
import re

from kiln_test_case import KilnTestCase, main

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "examples/*/README.md", "kernel_sources/*/README.md"]
# A command in a block of code (after a prompt, a variable, RUN or &&), or in `a span of it`.
SHOWN = re.compile(r"(?:^\s+|^|`|&& |RUN |\$ |=\S+ |bin/)kiln ([^`#|;>&]+)")


class GuidesTest(KilnTestCase):
    def setUp(self):
        super().setUp()
        listed = self.kiln("help", "nosuch").err
        self.commands = set(re.search(r"want environment, (.*); got", listed)[1].split(", ")) | {"cache", "tune"}
        self.helps = {}

    def help_of(self, command):
        if command not in self.helps:
            result = self.kiln(*command.split(), "--help")
            self.assertEqual(result.code, 0, command)
            self.helps[command] = result.out
        return self.helps[command]

    def command_of(self, words):
        """The longest known command that the words begin with, or None."""
        for count in (2, 1):
            if " ".join(words[:count]) in self.commands:
                return " ".join(words[:count])
        return None

    def faults(self, text):
        """What is wrong with the commands in `text`."""
        text = re.sub(r"\\\n\s*", " ", text)  # a command over several lines
        for line in text.split("\n"):
            for shown in SHOWN.findall(line):
                words = shown.split()
                if not re.fullmatch(r"[a-z]+", words[0]) or (words[0] == "help" and len(words) > 1):
                    continue  # `kiln COMMAND`, `kiln --version`
                command = self.command_of(words)
                if command is None:
                    yield f"kiln {words[0]}: no such command: {line.strip()}"
                    continue
                for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", shown):
                    if not re.search(re.escape(option) + r"(?![\w-])", self.help_of(command) + self.kiln("--help").out):
                        yield f"kiln {command} has no {option}: {line.strip()}"

    def test_guides_show_commands_that_are_there(self):
        seen = 0
        for pattern in PAGES:
            for page in sorted(glob.glob(os.path.join(ROOT, pattern))):
                with open(page, encoding="utf-8") as file:
                    text = file.read()
                seen += len(SHOWN.findall(text))
                self.assertEqual(list(self.faults(text)), [], page)
        self.assertGreater(seen, 50)

    def test_a_fault_is_seen(self):
        faults = list(self.faults("    kiln wram --calls x\n`kiln warm --call x`, kilns warm\n    A=b kiln cache export p --bord h200\n"))
        self.assertEqual(len(faults), 3, faults)

    def test_help_alone_is_the_page_of_all(self):
        self.assertEqual(self.kiln("help").out, self.kiln("--help").out)

    def test_every_command_shows_examples_of_itself(self):
        for command in sorted(self.commands):
            text = self.help_of(command)
            self.assertIn("Examples:", text, command)
            examples = text[text.index("Examples:"):]
            self.assertIn(f"kiln {command}", examples)
            self.assertEqual(list(self.faults(examples)), [], command)


if __name__ == "__main__":
    main()
