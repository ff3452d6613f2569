"""Makes the Debian package, unpacks it into a root, and runs it from there."""
import json

from packaging import clean_environment, expect, main, run

CALL = ('{"op":"LayerNormFwdOp","params":{"normalized_shape":[64]},'
        '"inputs":{"x":{"dtype":"float32","shape":[4,64]}}}')


def check(args, folder):
    env = clean_environment(folder)
    cpack = args.cmake[: -len("cmake")] + "cpack"
    run(cpack, "-G", "DEB", "--config", f"{args.kiln_build}/CPackConfig.cmake", "-B", folder / "packages", env=env)
    (package,) = (folder / "packages").glob("*.deb")
    expect(package.name.startswith("kiln_0.") and package.name.endswith(".deb"), package.name)
    fields = run("dpkg-deb", "-f", package, env=env)
    expect("libabsl" in fields and "libc6" in fields, f"it depends on what it links:\n{fields}")
    expect("cuda" not in fields.split("Depends:")[1].split("\n")[0], f"and not on CUDA:\n{fields}")

    root = folder / "root"
    run("dpkg-deb", "-x", package, root, env=env)
    kiln = root / "usr" / "bin" / "kiln"
    expect(run(kiln, "--version", env=env).startswith("kiln 0."), "it runs")
    report = json.loads(run(kiln, "run", CALL, "--device", "cpu", "--json", env=env))
    expect(report["ok"] and report["tier"] == "built", f"it builds and runs a kernel: {report}")
    checks = {c["name"]: c for c in json.loads(run(kiln, "doctor", "--json", env=env))["checks"]}
    plugin = root.resolve() / "usr" / "lib" / "kiln" / "backends" / "libkiln_cpu_backend.so"
    expect(checks[f"backend {plugin}"]["ok"], f"its own backend is found: {list(checks)}")
    warm = json.loads(run(kiln, "warm", CALL, "--arch", "90", "--json", env=env))
    expect(warm["built"] == 1, f"its own compile worker compiles: {warm}")
    expect(not list(root.rglob("*.cc")), "no sources are in it")
    print(f"{package.name}: unpacked and run")


main(check)
