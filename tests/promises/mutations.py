# SPDX-License-Identifier: Apache-2.0
"""Checks that the test of the promises finds each fault of a table when it is put into the engine.

    mutations.py SOURCE_ROOT [NAME]...

A fault replaces one exact piece of source text, in a copy of the sources. If the text is not found
exactly once, the table is out of date, and the fault counts as failed. Prints TAP.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutation_table import MUTATIONS

FLAGS = (
    "-std=gnu17 -O1 -D_GNU_SOURCE -fno-strict-aliasing -w -Isrc -Iinclude -Itests"
    ' -DBERTH_VERSION="mutated" -DBERTH_BINDIR="nowhere"'
).split()
ROOMS = ("src/base", "src/model", "src/codec", "src/engine", "tests/promises")
SECONDS = 600
REPORT = re.compile(r"^promise (\d+): (.*)$", re.MULTILINE)


def compiler():
    return os.environ.get("CC", "cc").split()


def compile_one(root, source, out, *first):
    subprocess.run([*compiler(), *first, *FLAGS, "-c", source, "-o", out], cwd=root, check=True)
    return out


def objects_of(root):
    """Compiles everything once; returns the objects by source."""
    sources = [
        path.relative_to(root)
        for room in ROOMS
        for path in sorted((root / room).rglob("*.c"))
        if path.name != "test_model.c"
    ]
    objects = {source: root / "objects" / str(source).replace("/", "-") for source in sources}
    (root / "objects").mkdir()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(compile_one, root, source, out.with_suffix(".o"))
            for source, out in objects.items()
        ]
        for job in jobs:
            job.result()
    return {source: out.with_suffix(".o") for source, out in objects.items()}


def link(root, objects, name):
    program = root / f"test-{name}"
    subprocess.run([*compiler(), *objects.values(), "-lcmocka", "-o", program], cwd=root, check=True)
    return program


def run(program):
    """Returns (whether it passed, number of the broken promise or None, message)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BERTH_")}
    try:
        done = subprocess.run(
            [program], env=environment, timeout=SECONDS, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )
    except subprocess.TimeoutExpired:
        return False, None, f"timeout after {SECONDS} s"
    report = REPORT.search(done.stderr)
    if report:
        return False, int(report.group(1)), report.group(2)
    return done.returncode == 0, None, f"exit code {done.returncode}"


def build(root, objects, name, file, text):
    """Links the test with a changed file. A changed header is found before the real one."""
    place = root / "mutated" / name
    mutated = place / "engine" / file
    mutated.parent.mkdir(parents=True)
    mutated.write_text(text, encoding="utf-8")
    changed = {}
    for source in objects:
        if source == Path("src/engine") / file:
            changed[source] = compile_one(root, mutated, place / "object.o")
        elif file.endswith(".h") and source.is_relative_to("src/engine"):
            out = place / f"{source.stem}.o"
            changed[source] = compile_one(root, source, out, f"-I{place}")
    return link(root, {**objects, **changed}, name)


def mutate(root, objects, mutation):
    """Returns None if the test found the fault, else a description of the problem."""
    name, file, old, new, promises = mutation
    source = root / "src/engine" / file
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    if text.count(old) != 1:
        return f"expected its text once in {file}, got {text.count(old)}: update mutation_table.py"
    try:
        passed, promise, words = run(build(root, objects, name, file, text.replace(old, new)))
    except subprocess.CalledProcessError as error:
        return f"does not build: {error}"
    if passed:
        return "the test did not find it"
    if promise is None:
        return f"the test failed without a report: {words}"
    print(f"# {name}: promise {promise}: {words}", flush=True)
    if promise not in promises:
        return f"expected one of the promises {promises} to be broken, got {promise}: {words}"
    return None


def main(source_root, *wanted):
    chosen = [mutation for mutation in MUTATIONS if not wanted or mutation[0] in wanted]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="berth-mutations-") as directory:
        root = Path(directory)
        for part in ("src", "include", "tests"):
            shutil.copytree(Path(source_root) / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        objects = objects_of(root)
        print(f"1..{len(chosen)}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            findings = pool.map(lambda mutation: mutate(root, objects, mutation), chosen)
            for number, (mutation, finding) in enumerate(zip(chosen, findings), 1):
                failed += finding is not None
                print(f"{'not ok' if finding else 'ok'} {number} - {mutation[0]}", flush=True)
                if finding:
                    print(f"# {finding}", flush=True)
                    print(f"not ok - {mutation[0]}: {finding}", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
