# SPDX-License-Identifier: Apache-2.0
"""tools/deps, with made-up commands in place of apt's: these tests install nothing."""
import os
import shutil

import pytest

QUERY = """
shift 3
for package; do case " $INSTALLED " in *" $package "*) echo "installed $package" ;; esac; done
exit 1
"""
APT = 'echo "apt $*" >>"$HOME/calls"; case "$*" in *"$BREAK"*) echo "E: cannot"; exit 100 ;; esac'
ALL = (
    "gcc libc6-dev meson ninja-build pkgconf libyaml-dev scdoc"
    " libevent-dev libncurses-dev libsqlite3-dev libseccomp-dev"
    " libcmocka-dev libhwloc-dev python3 python3-pytest python3-yaml python3-jsonschema"
    " tmux podman runc busybox-static strace"
    " chromium nodejs npm"
    " bash-completion fish zsh groff-base prometheus"
    " pocl-opencl-icd ocl-icd-opencl-dev"
)


@pytest.fixture
def deps(sandbox, source_root):
    """Run the tool with only a few commands in PATH; return its result and apt's calls."""
    commands = sandbox.directory / "bin"
    commands.mkdir()
    for name in ("sh", "env", "id", "mktemp", "rm", "cat", "grep"):
        os.symlink(shutil.which(name), commands / name)

    def script(name, text):
        (commands / name).write_text(f"#!{shutil.which('sh')}\n{text}\n", encoding="utf-8")
        (commands / name).chmod(0o755)

    def run(*groups, apt=True, uid=0, sudo=True, cargo=False, **env):
        if apt:
            script("dpkg-query", QUERY)
            script("apt-get", APT)
        if cargo:
            script("cargo", "exit 1")
        (commands / "id").unlink()
        script("id", f"echo {uid}")
        if sudo:
            script("sudo", 'echo sudo >>"$HOME/calls"; exec "$@"')
        env = {"PATH": str(commands), "INSTALLED": "", "BREAK": "nothing", **env}
        done = sandbox.run([shutil.which("sh"), source_root / "tools/deps", *groups], env=env)
        calls = sandbox.home / "calls"
        return done, calls.read_text().splitlines() if calls.exists() else []

    return run


def test_nothing_missing_is_silent(deps):
    assert deps("build", "test", INSTALLED=ALL) == ((0, "", ""), [])


def test_missing_packages_are_named_and_installed(deps):
    done, calls = deps("build", "test", INSTALLED=ALL.replace("scdoc ", "").replace("gcc ", ""))
    assert done == (0, "Installing with apt: gcc scdoc\n", "")
    assert [call.split()[-1] for call in calls] == ["update", "scdoc"]
    assert calls[1].endswith("install -y --no-install-recommends gcc scdoc")


def test_groups_do_not_repeat_packages(deps):
    done, _ = deps("test", "bench", "check")
    assert done.stdout.split().count("python3") == 1


def test_update_may_fail_in_part(deps):
    done, calls = deps("coverage", BREAK="update")
    assert done.code == 0
    assert done.stderr.startswith("Note: apt-get update did not reach everything")
    assert len(calls) == 2


def test_install_fails(deps):
    done, _ = deps("coverage", BREAK="install")
    assert done.code == 1
    assert done.stderr == "E: cannot\ntools/deps: apt-get could not install: gcovr\n"


def test_ordinary_user_goes_through_sudo(deps):
    done, calls = deps("coverage", uid=1000)
    assert done.code == 0
    assert calls[0] == "sudo"


def test_ordinary_user_without_sudo(deps):
    done, calls = deps("coverage", uid=1000, sudo=False)
    assert (done.code, calls) == (1, [])
    assert done.stderr.splitlines()[-1] == "Installing them needs root or sudo: apt-get install gcovr"


def test_without_apt(deps):
    done, _ = deps("coverage", apt=False)
    assert done.code == 1
    assert "gcovr" in done.stderr
    assert "DEPS=no skips this step" in done.stderr.splitlines()[-1]


def test_told_to_skip(deps):
    assert deps("build", apt=False, DEPS="no") == ((0, "", ""), [])


def test_clang_is_added_when_asked_for(deps):
    assert deps("build", INSTALLED=ALL, CC="clang")[0].stdout == "Installing with apt: clang\n"
    done, _ = deps("build", INSTALLED=ALL, CC="clang", SAN="thread")
    assert done.stdout == "Installing with apt: clang libclang-rt-dev\n"


def test_cargo_is_installed_only_where_there_is_none(deps):
    installed = "python3 librust-tokio-dev util-linux task-spooler redis-tools libhiredis-dev"
    assert deps("bench", INSTALLED=installed)[0].stdout == "Installing with apt: cargo\n"
    done, calls = deps("bench", cargo=True, INSTALLED=installed)
    assert (done, len(calls)) == ((0, "", ""), 2)  # both calls are from the first run


@pytest.mark.parametrize("groups", [[], ["kitchen"]])
def test_wrong_use(deps, groups):
    done, _ = deps(*groups)
    assert done.code == 2
    assert "usage: tools/deps" in done.stderr
