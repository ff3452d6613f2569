"""Installs Kiln into a fresh prefix, builds examples/backend against it, runs its tests, installs it, finds it there."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*words, env=None):
    done = subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True, timeout=500, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"must hold: {what}")


def check(args, folder):
    prefix, source, build = folder / "prefix", folder / "acme", folder / "build"
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env["KILN_CACHE_DIR"] = str(folder / "cache")
    run(args.cmake, "--install", args.kiln_build, "--prefix", prefix)
    shutil.copytree(args.source, source)  # nothing of Kiln's tree lies around it

    flags = ["-DCMAKE_CXX_FLAGS=-fsanitize=" + args.sanitize.replace(";", ",")] if args.sanitize else []
    run(args.cmake, "-S", source, "-B", build, "-G", args.generator, f"-DCMAKE_CXX_COMPILER={args.compiler}",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug", *flags, env=env)
    run(args.cmake, "--build", build, env=env)
    plugin = build / "kiln_acme.so"
    tests = run(build / "acme_tests", env={**env, "KILN_BACKEND_PATH": str(plugin)})
    expect("[  PASSED  ] 4 tests" in tests, f"four tests pass:\n{tests}")

    kiln = [path for path in (prefix / "bin").iterdir() if path.name == "kiln"][0]
    before = json.loads(run(kiln, "ops", "LayerNormFwdOp", "--json", env=env))
    expect("acme_host_layer_norm" not in keys(before), "not found before it is installed")
    expect("cpu_layer_norm" in keys(before), "the installed command finds the installed CPU backend")

    run(args.cmake, "--install", build, "--prefix", prefix)
    installed = list(prefix.glob("lib*/**/kiln/backends/kiln_acme.so"))
    expect(len(installed) == 1, f"one plugin is installed: {installed}")
    expect("acme_host_layer_norm" in keys(json.loads(run(kiln, "ops", "LayerNormFwdOp", "--json", env=env))),
           "kiln ops lists its implementation")
    checks = {c["name"]: c for c in json.loads(run(kiln, "doctor", "--json", env=env))["checks"]}
    row = checks.get(f"backend {installed[0].resolve()}")
    expect(row is not None and row["ok"], f"kiln doctor reports it as ok: {checks}")
    expect(checks["device acme:0"]["ok"], "kiln doctor lists its device")
    run(build / "acme_tests", env=env)  # found in the folder, without KILN_BACKEND_PATH


def keys(ops):
    return [row["key"] for row in ops["ops"][0]["implementations"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "kiln-build", "cmake", "generator", "compiler", "sanitize"):
        parser.add_argument("--" + name, required=True)
    with tempfile.TemporaryDirectory(prefix="kiln example ") as folder:
        check(parser.parse_args(), pathlib.Path(folder))
    print("examples/backend: built, tested, installed and found")


main()
