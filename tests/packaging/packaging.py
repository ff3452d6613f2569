"""What the tests of packaging share."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*words, env=None, cwd=None, code=0):
    done = subprocess.run([str(w) for w in words], env=env, cwd=cwd, capture_output=True, text=True, timeout=2900,
                          check=False)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_error(*words, env=None):
    """What a program that is used wrongly says."""
    return subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True, timeout=60, check=False).stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"must hold: {what}")


def clean_environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    return {**env, "KILN_CACHE_DIR": str(folder / "cache")}


def main(check):
    parser = argparse.ArgumentParser()
    for name in ("source", "kiln-build", "cmake", "generator", "compiler"):
        parser.add_argument("--" + name, required=True)
    with tempfile.TemporaryDirectory(prefix="kiln packaging ") as folder:
        check(parser.parse_args(), pathlib.Path(folder))
