"""Installs Kiln, moves the prefix, and builds a program against it with find_package and with pkg-config."""
import shutil

from packaging import clean_environment, expect, main, run, run_error


def check(args, folder):
    env = clean_environment(folder)
    first, prefix = folder / "first place", folder / "prefix"
    run(args.cmake, "--install", args.kiln_build, "--prefix", first)
    first.rename(prefix)  # nothing may know where it was installed

    source = folder / "consumer"
    shutil.copytree(f"{args.source}/examples/consumer", source)
    configure = [args.cmake, "-S", source, "-B", folder / "build", "-G", args.generator,
                 f"-DCMAKE_CXX_COMPILER={args.compiler}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug"]
    run(*configure, env=env)
    run(args.cmake, "--build", folder / "build", env=env)
    expect(run(folder / "build" / "consumer", env=env).startswith("-1.3416"), "the consumer computes")

    # The version file and the components say no where they must.
    lists = source / "CMakeLists.txt"
    text = lists.read_text()
    for change, fragment in [(("kiln 0.1 ", "kiln 0.2 "), "0.2"), (("tools cpu", "tools gpu9000"), "gpu9000")]:
        lists.write_text(text.replace(*change))
        expect(text != lists.read_text(), "the consumer asks for what is changed here")
        words = [*configure[:4], folder / f"build{fragment}", *configure[5:]]
        run(*words, env=env, code=1)

    pc = {**env, "PKG_CONFIG_PATH": ":".join(str(p) for p in prefix.glob("**/pkgconfig"))}
    flags = run("pkg-config", "--cflags", "--libs", "kiln", env=pc).replace("\\ ", "\0").split()
    flags = [flag.replace("\0", " ") for flag in flags]
    lib = next(prefix.glob("lib*/**/libkiln.so")).parent
    run(args.compiler, "-std=c++20", source / "main.cc", "-o", folder / "by_pc", *flags, f"-Wl,-rpath,{lib}", env=env)
    expect(run(folder / "by_pc", env=env).startswith("-1.3416"), "the consumer by pkg-config computes")

    kiln = prefix / "bin" / "kiln"
    page = next((prefix / "share").glob("man/man1/kiln.1")).read_text()
    expect(page == run(kiln, "man", env=env), "the installed manual page is the command's")
    for file in ["bash-completion/completions/kiln", "zsh/vendor-completions/_kiln", "fish/vendor_completions.d/kiln.fish"]:
        expect((prefix / "share" / file).stat().st_size > 1000, f"{file} is installed")

    # The service, as its readers build it.
    shutil.copytree(f"{args.source}/examples/serving", folder / "serving")
    run(*[*configure[:2], folder / "serving", "-B", folder / "build serving", *configure[5:]], env=env)
    run(args.cmake, "--build", folder / "build serving", env=env)
    expect("want --device" in run_error(folder / "build serving" / "kiln_serving", "--bogus", env=env), "it starts")

    # Each component alone: a serving image takes `runtime` and nothing else.
    image = folder / "image"
    run(args.cmake, "--install", args.kiln_build, "--prefix", image, "--component", "runtime")
    names = {path.name for path in image.rglob("*") if path.is_file() or path.is_symlink()}
    expect({"libkiln_cpu_backend.so", "LICENSE"} <= names, f"the runtime is in {names}")
    expect(not any(name.endswith(".h") or name == "kiln" or name == "libkiln.so" for name in names), f"only that: {names}")
    print("installed, moved, found by find_package and pkg-config")


main(check)
