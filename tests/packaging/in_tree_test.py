"""Kiln as a part of another project's build: add_subdirectory, then FetchContent in the same build folder, so that what
is compiled is compiled once."""
import shutil

from packaging import clean_environment, expect, main, run


def check(args, folder):
    env = clean_environment(folder)
    source, build = folder / "consumer", folder / "build"
    shutil.copytree(f"{args.source}/examples/consumer", source)
    for way in ["subdirectory", "fetch"]:
        run(args.cmake, "-S", source, "-B", build, "-G", args.generator, f"-DCMAKE_CXX_COMPILER={args.compiler}",
            "-DCMAKE_BUILD_TYPE=Debug", f"-DKILN_FROM={way}", f"-DKILN_SOURCE={args.source}", env=env)
        run(args.cmake, "--build", build, "--target", "consumer", "kiln_cpu_backend", "kiln_compile_worker", env=env)
        expect(run(build / "consumer", env=env).startswith("-1.3416"), f"the consumer by {way} computes")
        targets = run(args.cmake, "--build", build, "--target", "help", env=env)
        expect("kiln" in targets and "runtime_tests" not in targets, "Kiln's tests stay at home")
    run(args.cmake, "--install", build, "--prefix", folder / "prefix", env=env)
    expect(not list((folder / "prefix").rglob("*kiln*")), "Kiln installs nothing into another project's prefix")
    print("built by add_subdirectory and by FetchContent")


main(check)
