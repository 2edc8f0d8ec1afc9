# SPDX-License-Identifier: Apache-2.0
"""libberth, as a program finds it after the installation."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("BERTH_BUILD_ROOT", "build"))

PROGRAM = r"""
#include <berth/berth.h>
#include <berth/context.h>
#include <stdio.h>

static void done(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    (void)ticket;
    *(int *)data = code == 0 && lease.id != 0;
}

int main(void)
{
    struct berth_device devices[2] = {};
    struct berth_claim_options options = {};
    struct berth_pool *pool = NULL;
    struct berth_request *request = NULL;
    struct berth_ticket ticket;
    struct berth_lease lease;
    struct berth_error error = BERTH_ERROR_INIT;
    int called = 0;

    for (uint32_t i = 0; i < 2; i++) {
        devices[i].vendor = BERTH_AMD;
        devices[i].index = i;
        devices[i].mig = BERTH_NO_MIG;
        devices[i].memory = BERTH_UNKNOWN;
    }
    options.size = sizeof(options);
    options.done = done;
    options.data = &called;
    if (berth_pool_open_devices(devices, 2, NULL, &pool, &error) < 0 ||
        berth_request_create(&request, &error) < 0 ||
        berth_request_set(request, "gpus", "2", &error) < 0 ||
        berth_claim(pool, request, BERTH_FOR_EVER, &lease, &error) < 0 ||
        berth_claim_start(pool, NULL, &options, &ticket, &error) < 0 ||
        berth_release(pool, lease, &error) < 0) {
        puts(error.message);
        return 1;
    }
    printf("%s %d %s\n", berth_version(), called, berth_error_describe(BERTH_ERROR_BUSY));
    berth_request_destroy(request);
    berth_pool_close(pool);
    return 0;
}
"""


def option(source_root, name):
    answer = subprocess.run(
        [source_root / "tools/build-option", BUILD, name], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


@pytest.fixture
def plain_build(source_root):
    if option(source_root, "b_sanitize") != "none":
        pytest.skip("the library is built with a sanitizer, which programs without it cannot load")


@pytest.fixture
def staged(source_root, sandbox, plain_build):
    """The tree that `make install DESTDIR=...` creates, and pkg-config's output for it."""
    root = sandbox.directory / "staged"
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    prefix = root / option(source_root, "prefix").lstrip("/")
    [description] = prefix.rglob("berth.pc")
    return prefix, description.parent


def pkg_config(staged, *words):
    prefix, path = staged
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    answer = subprocess.run(
        ["pkg-config", f"--define-variable=prefix={prefix}", *words, "berth"],
        env={**os.environ, "PKG_CONFIG_PATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def test_the_library_exports_its_interface_only(source_root, plain_build):
    """If this test fails for a new public function, add it to tests/data/libberth.symbols."""
    found = subprocess.run(
        ["nm", "-D", "--defined-only", BUILD / "libberth.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(line.split()[-1] for line in found.stdout.splitlines())
    assert names == (source_root / "tests/data/libberth.symbols").read_text().split()


def test_every_function_of_the_headers_is_exported(source_root):
    declared = set()
    for header in (source_root / "include/berth").glob("*.h"):
        declared |= set(re.findall(r"^\w[^;(=]*?\b(berth_\w+)\(", header.read_text(), re.M))
    assert sorted(declared) == (source_root / "tests/data/libberth.symbols").read_text().split()


@pytest.mark.parametrize(
    "compiler, name, standard",
    [
        ("cc", "program.c", "-std=gnu17"),
        ("g++", "program.cc", "-std=c++11"),
    ],
)
def test_a_program_builds_against_the_installed_library(sandbox, staged, compiler, name, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = sandbox.directory / name
    source.write_text(PROGRAM)
    program = sandbox.directory / "program"
    built = sandbox.run(
        [compiler, standard, "-Wall", "-Wextra", "-Werror", *pkg_config(staged, "--cflags"), source]
        + ["-o", program, *pkg_config(staged, "--libs")],
        timeout=60,
    )
    assert (built.code, built.stderr) == (0, "")
    [library] = staged[0].rglob("libberth.so.0")
    ran = sandbox.run([program], env={"LD_LIBRARY_PATH": library.parent})
    assert (ran.code, ran.stdout) == (0, "0.1.0 1 no free device\n")
    assert pkg_config(staged, "--modversion") == ["0.1.0"]
