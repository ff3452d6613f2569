"""For programs that run `kiln`: their arguments, and runs of it that fail with what it said."""
import argparse
import json
import os
import subprocess
import sys


def program(text):
    """An argparse type."""
    if not (os.path.isfile(text) and os.access(text, os.X_OK)):
        raise argparse.ArgumentTypeError(f"must be a program that is built: got {text!r}")
    return os.path.abspath(text)


def count(text):
    """An argparse type."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0: got {text!r}")
    return int(text)


def fail(words, how, said=""):
    """Ends this program."""
    sys.exit(f"{os.path.basename(sys.argv[0])}: must succeed: {' '.join(words)}: {how}: {said.strip() or 'it said nothing'}")


def output_of(words, environment):
    """What it writes; ends this program where it fails."""
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    except OSError as e:
        fail(words, "could not be started", str(e))
    if done.returncode != 0:
        fail(words, f"ended with {done.returncode}", done.stderr)
    return done.stdout


def json_of(words, environment):
    output = output_of(words, environment)
    try:
        return json.loads(output)
    except ValueError:
        return fail(words, "must write JSON", output[:200])
