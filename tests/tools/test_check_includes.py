# SPDX-License-Identifier: Apache-2.0
"""tools/check-includes reports each violation of its rules, and nothing else."""
import subprocess
import sys

import pytest

GOOD = {
    "include/berth/error.h": '#include "berth/version.h"\n#include <stddef.h>\n',
    "include/berth/version.h": "",
    "src/base/text/text.h": "#include <berth/error.h>\n#include <time.h>\n",
    "src/base/text/text.c": '#include "base/text/text.h"\n#include <unistd.h>\n',
    "src/model/machine/device.h": '#include "base/text/text.h"\n#include <sys/types.h>\n#include <stdio.h>\n',
    "src/engine/ledger.h": '#include "model/machine/device.h"\n',
    "src/hardware/nvidia/nvidia.c": '#include "model/machine/device.h"\n#include <dlfcn.h>\n',
    "src/hardware/nvidia/nvidia.h": "",
    "src/daemon/core/loop.h": '#include "engine/ledger.h"\n',
    "src/daemon/clients/quota.h": '#include "daemon/core/loop.h"\n',
    "src/daemon/leases/pool.h": '#include "daemon/clients/quota.h"\n',
    "src/daemon/handlers/handle.h": '#include "daemon/leases/pool.h"\n',
    "src/cli/verb.h": '#include "daemon/core/loop.h"\n',
    "src/main/berth.c": '#include "cli/verb.h"\n',
}


@pytest.fixture
def check(tmp_path, source_root):
    """Run the tool on the good tree with some files changed or added; return its lines."""

    def run(changes):
        for name, text in {**GOOD, **changes}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        tool = [sys.executable, source_root / "tools/check-includes", tmp_path]
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if done.stdout else 0), done.stderr
        return done.stdout.splitlines()

    return run


def test_good_tree_passes(check):
    assert check({}) == []


def test_this_project_passes(source_root):
    tool = [sys.executable, source_root / "tools/check-includes"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


def test_include_to_the_right(check):
    (line,) = check({"src/model/machine/device.c": '\n\n#include "engine/ledger.h"\n'})
    assert line.startswith(
        "src/model/machine/device.c:3: model must not include engine/ledger.h: arrows run base <- model <- codec <- {engine, "
    )
    assert line.endswith("<- main")


def test_include_to_the_right_in_angle_brackets(check):
    (line,) = check({"src/base/text/text.c": "#include <model/machine/device.h>\n"})
    assert "base must not include model/machine/device.h" in line


def test_include_between_siblings(check):
    (line,) = check({"src/engine/queue.c": '#include "hardware/nvidia/nvidia.h"\n'})
    assert "engine must not include hardware/nvidia/nvidia.h" in line


def test_main_is_included_by_nobody(check):
    (line,) = check({"src/cli/run/run.c": '#include "main/berth.c"\n'})
    assert "cli must not include main/berth.c" in line


def test_include_to_a_later_folder(check):
    (line,) = check(
        {
            "src/engine/policy/policy_pack.c": '#include "engine/placement/filter.h"\n',
            "src/engine/placement/filter.h": "",
        }
    )
    assert line == (
        "src/engine/policy/policy_pack.c:1: engine/policy must not include engine/placement/filter.h:"
        " inside engine, arrows run policy <- placement <- . <- {queue, journal}"
    )


def test_include_between_folders_of_one_level(check):
    (line,) = check(
        {
            "src/engine/queue/lanes.c": '#include "engine/journal/journal.h"\n',
            "src/engine/journal/journal.h": "",
        }
    )
    assert "engine/queue must not include engine/journal/journal.h" in line


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("journal/journal_file.c", "clients/quota.h"),
        ("devices/device_locks.c", "leases/pool.h"),
        ("leases/job.c", "handlers/handle.h"),
        ("core/child.c", "clients/quota.h"),
    ],
)
def test_levels_of_the_daemon(check, source, target):
    (line,) = check({f"src/daemon/{source}": f'#include "daemon/{target}"\n'})
    folder = source.split("/")[0]
    assert line.startswith(f"src/daemon/{source}:1: daemon/{folder} must not include daemon/{target}: inside daemon")


def test_include_from_an_earlier_folder(check):
    assert check({"src/engine/queue/lanes.c": '#include "engine/ledger.h"\n'}) == []


def test_folders_that_count_as_one(check):
    files = {
        "src/base/error.c": '#include "base/text/text.h"\n',
        "src/base/error.h": "",
        "src/base/text/utf8.c": '#include "base/error.h"\n',
    }
    assert check(files) == []
    (line,) = check({"src/base/error.c": '#include "base/system/file.h"\n', "src/base/system/file.h": ""})
    assert "base must not include base/system/file.h" in line


def test_unknown_folder(check):
    (line,) = check({"src/engine/misc/things.c": ""})
    assert line == (
        "src/engine/misc/things.c:1: unknown folder engine/misc: give it a level in tools/check-includes"
    )


def test_unknown_component(check):
    (line,) = check({"src/misc/things.c": ""})
    assert line.startswith("src/misc/things.c:1: unknown component misc")


def test_file_outside_the_components(check):
    (line,) = check({"src/things.c": ""})
    assert line.startswith("src/things.c:1: a source file belongs in a component")


def test_missing_file(check):
    assert check({"src/base/text/text.c": '#include "text.h"\n'}) == [
        'src/base/text/text.c:1: "text.h" names no file below src/'
    ]


def test_public_header_in_quotes(check):
    (line,) = check({"src/base/text/text.c": '#include "berth/error.h"\n'})
    assert "write <berth/error.h>" in line


@pytest.mark.parametrize("include", ['"base/text/text.h"', "<base/text/text.h>", '"anything.h"'])
def test_public_header_knows_nothing_internal(check, include):
    (line,) = check({"include/berth/error.h": f"#include {include}\n"})
    assert line.startswith("include/berth/error.h:1: an installed header must not include")


@pytest.mark.parametrize(
    "comment",
    [
        '// #include "engine/ledger.h"\n',
        '/* #include "engine/ledger.h" */\n',
        '/*\n#include "engine/ledger.h"\n*/\n',
        '// goes on \\\n#include "engine/ledger.h"\n',
    ],
)
def test_comments_do_not_count(check, comment):
    assert check({"src/model/machine/device.c": comment}) == []


def test_comment_signs_in_a_string_do_not_hide_an_include(check):
    text = 'const char *glob = "/*";\n#include "engine/ledger.h"\n/* */\n'
    (line,) = check({"src/model/machine/device.c": text})
    assert line.startswith("src/model/machine/device.c:2:")


def test_unusual_spacing_counts(check):
    (line,) = check({"src/model/machine/device.c": '\n  #  include   "engine/ledger.h"\n'})
    assert line.startswith("src/model/machine/device.c:2:")


@pytest.mark.parametrize("room", ["model", "engine"])
@pytest.mark.parametrize("header", "unistd.h fcntl.h pthread.h time.h sys/socket.h stdatomic.h".split())
def test_pure_rooms_know_no_outside(check, room, header):
    (line,) = check({f"src/{room}/x.c": f"#include <{header}>\n"})
    assert line.startswith(f"src/{room}/x.c:1: {room} must not include {header}")


@pytest.mark.parametrize("include", ["<dlfcn.h>", '"base/system/library.h"'])
def test_other_rooms_load_no_libraries(check, include):
    loader = {"src/base/system/library.h": "#include <dlfcn.h>\n"}
    (line,) = check(loader | {"src/daemon/core/loop.c": f"#include {include}\n"})
    assert "only hardware and context load libraries" in line


def test_long_file(check):
    assert check({"src/base/text/text.c": "\n" * 600}) == []
    (line,) = check({"src/base/text/text.c": "\n" * 601})
    assert line == "src/base/text/text.c:601: 601 lines, more than 600: split it"


def test_no_sources_at_all(tmp_path, source_root):
    tool = [sys.executable, source_root / "tools/check-includes", tmp_path]
    assert subprocess.run(tool, capture_output=True, check=False).returncode == 1
