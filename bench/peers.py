# SPDX-License-Identifier: Apache-2.0
"""Build the measured programs, those in C and the peer in Rust, and run them."""
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from harness import Skipped

HERE = Path(__file__).resolve().parent
# The directory where Debian's librust-*-dev packages put their sources.
CRATES = Path("/usr/share/cargo/registry")


def compiler_command(build):
    """Return the compiler and the flags with which the build compiles berth's main file."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in commands:
        if entry["file"].endswith("src/main/berth.c"):
            # The arguments after -MD name the files of this one compilation.
            words = shlex.split(entry["command"])
            return words[: words.index("-MD")]
    raise Skipped("the build directory does not say how berth is compiled")


def is_older(program, sources):
    if not program.exists():
        return True
    made = program.stat().st_mtime
    return any(source.stat().st_mtime > made for source in sources)


def compiled(build, *sources, options=(), headers=()):
    """Return the program of these C files below bench/, compiled with berth's own flags and named
    after the first file. It is rebuilt if it is older than the files or the headers."""
    paths = [HERE / source for source in sources]
    program = build / "bench" / paths[0].stem
    if is_older(program, [*paths, *headers]):
        program.parent.mkdir(exist_ok=True)
        command = [*compiler_command(build), "-pie", "-o", program, *paths, *options]
        subprocess.run(command, cwd=build, check=True)
    return program


def compiled_with_libberth(build, *sources):
    """The same, linked to the shared library of the build directory as users link to it."""
    library = build / "libberth.so"
    if not library.exists():
        raise Skipped("libberth is not built")
    headers = [*HERE.glob("*.h"), *(HERE.parent / "include/berth").glob("*.h")]
    options = [library, f"-Wl,-rpath,{library.parent}", "-pthread"]
    return compiled(build, *sources, options=options, headers=headers)


def compiled_with_components(build, components, *sources):
    """The same, linked to libraries of berth's components, each before those that it depends on."""
    libraries = [build / f"src/lib{component}.a" for component in components]
    if not all(library.exists() for library in libraries):
        raise Skipped("berth is not built")
    headers = [*HERE.glob("*.h"), *libraries]
    return compiled(build, *sources, options=libraries, headers=headers)


def number(program, *arguments):
    """Return the one number that a program prints."""
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return float(done.stdout)


def built_by_cargo(build, name, crate):
    """Return the program of the package peers/NAME, which needs a crate that Debian packages.
    Nothing comes from the network, and nothing is written outside the build directory."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Skipped("cargo is not installed")
    if not any(CRATES.glob(f"{crate}-[0-9]*")):
        raise Skipped(f"the crate {crate} is not installed: librust-{crate}-dev")
    # cargo writes its lock file beside the package, so a copy is used. An older lock file may name
    # a crate that has since been replaced by a newer version.
    package = build / "bench" / name
    shutil.copytree(HERE / "peers" / name, package, dirs_exist_ok=True)
    (package / "Cargo.lock").unlink(missing_ok=True)
    sources = [
        'source.crates-io.replace-with="packaged"',
        f'source.packaged.directory="{CRATES}"',
    ]
    command = [cargo, "build", "--release", "--offline", "--quiet", "--target-dir", package / "target"]
    for source in sources:
        command += ["--config", source]
    environment = {**os.environ, "CARGO_HOME": str(build / "bench" / "cargo")}
    done = subprocess.run(
        command, cwd=package, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
        reason = errors[0] if errors else f"exit status {done.returncode}"
        raise Skipped(f"cargo could not build {name}: {reason}")
    return package / "target/release" / name
