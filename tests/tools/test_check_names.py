# SPDX-License-Identifier: Apache-2.0
"""tools/check-names reports each kind of wrong name, and nothing else."""
import subprocess
import sys

import pytest

GOOD = {
    "include/berth/berth.h": "int berth_claim(void);\n",
    "src/engine/engine.h": "int engine_claim(void);\n",
    "src/engine/queue/lanes.c": "struct lane {\n    int id;\n};\n\nint lanes_append(void)\n{\n    return 0;\n}\n",
    "src/engine/claims.c": "static int find_slot(void)\n{\n    return 0;\n}\n\nint engine_claim(void)\n{\n    return find_slot();\n}\n",
    "src/cli/ids.c": "int id_parse(void)\n{\n    return 0;\n}\n",
    "src/cli/run/run.c": "int run_fail(void)\n{\n    return 0;\n}\n",
    "src/libberth/claim.c": "int berth_claim(void)\n{\n    return 0;\n}\n",
    "src/daemon/core/loop.c": "void loop_run(void)\n{\n}\n",
}


@pytest.fixture
def check(tmp_path, source_root):
    """Run the tool on the good tree with some files changed or added; return its lines."""

    def run(changes):
        for name, text in {**GOOD, **changes}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        tool = [sys.executable, source_root / "tools/check-names", tmp_path]
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if done.stdout else 0), done.stderr
        return done.stdout.splitlines()

    return run


def test_good_tree_passes(check):
    assert check({}) == []


def test_this_project_passes(source_root):
    tool = [sys.executable, source_root / "tools/check-names"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


def test_function_with_a_foreign_prefix(check):
    (line,) = check({"src/model/machine/device.c": "\nint request_copy(int a,\n                 int b)\n{\n    return a + b;\n}\n"})
    assert line == "src/model/machine/device.c:2: request_copy() begins with none of: device, machine, model"


def test_prefix_must_end_at_a_word(check):
    (line,) = check({"src/model/machine/device.c": "void *devices_list(void)\n{\n    return 0;\n}\n"})
    assert line.startswith("src/model/machine/device.c:1: devices_list() begins with none of")


def test_inline_function_of_a_header(check):
    (line,) = check({"src/model/machine/device.h": "static inline int size_of(void)\n{\n    return 0;\n}\n"})
    assert "size_of()" in line


def test_static_function_of_a_single_word(check):
    (line,) = check({"src/model/machine/device.c": "\nstatic char *find(int a,\n                  int b)\n{\n    return 0;\n}\n"})
    assert line == "src/model/machine/device.c:2: static find() is a single word"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("void timer_set(void)\n{\n}\n", "timer_set() begins with none of: core, daemon, loop"),
        ("static void find(void)\n{\n}\n", "static find() is a single word"),
    ],
)
def test_functions_of_the_daemon(check, text, finding):
    assert check({"src/daemon/core/loop.c": text}) == [f"src/daemon/core/loop.c:1: {finding}"]


def test_berth_prefix_is_for_installed_headers(check):
    (line,) = check({"src/model/machine/device.c": "int berth_secret(void)\n{\n    return 0;\n}\n"})
    assert "berth_secret()" in line


def test_comments_and_strings_are_not_code(check):
    assert check({"src/model/machine/device.c": '/*\nint odd(void)\n{\n*/\nstatic const char *text = "struct lane {";\n'}) == []


def test_two_meanings_of_a_tag(check):
    (line,) = check({"src/model/machine/device.c": "\nstruct lane {\n    char c;\n};\n"})
    assert line == "src/engine/queue/lanes.c:1: tag lane is defined again at src/model/machine/device.c:2"


def test_base_name_twice(check):
    (line,) = check({"src/model/claims.c": ""})
    assert line == "src: claims names modules in engine and model"


def test_verb_may_share_a_name(check):
    assert check({"src/cli/claims.c": ""}) == []
