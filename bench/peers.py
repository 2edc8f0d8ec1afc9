# SPDX-License-Identifier: Apache-2.0
"""Building the peers that are written in C."""
import json
import shlex
import subprocess
from pathlib import Path

from harness import Skipped

HERE = Path(__file__).resolve().parent


def compiler_command(build):
    """How the build compiles berth's main file: the compiler and its flags."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in commands:
        if entry["file"].endswith("src/main/berth.c"):
            # What follows -MD names the files of this one compilation.
            words = shlex.split(entry["command"])
            return words[: words.index("-MD")]
    raise Skipped("the build directory does not say how berth is compiled")


def compiled(build, name):
    """The program of peers/NAME.c, compiled with berth's own flags; made anew when it is older."""
    source = HERE / "peers" / f"{name}.c"
    program = build / "bench" / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(exist_ok=True)
        command = [*compiler_command(build), "-pie", "-o", str(program), str(source)]
        subprocess.run(command, cwd=build, check=True)
    return program
