# SPDX-License-Identifier: Apache-2.0
"""Completion in real shells. It is generated from the tables of verbs and options, and has all of
them."""
import re

import pytest
from pool import inventory_of
from shells import SHELLS, Fish, completion_file, write_odd_completion
from waiting import until


@pytest.fixture(params=SHELLS, ids=lambda shell: shell.name)
def shell(request, sandbox, pool_of):
    """A shell. It ends before the pool, if the test has a pool."""
    shell = request.param(sandbox)
    yield shell
    shell.close()


def verbs(sandbox):
    found = re.findall(r"^  ([a-z]+) ", sandbox.run(["berth", "help"]).stdout, re.MULTILINE)
    assert len(found) >= 19
    return found


def words(sandbox, verb):
    """Return the subcommands of a verb."""
    shown = sandbox.run(["berth", "help", verb]).stdout.partition("\nSubcommands:\n")[2].partition("\nExamples:\n")[0]
    return re.findall(r"^  ([a-z]+) ", shown, re.MULTILINE)


def options(sandbox, verb):
    shown = sandbox.run(["berth", *verb.split(), "--help"]).stdout
    return ["--help", *re.findall(r"^(?:  -\w, |      )(--[a-z-]+)", shown, re.MULTILINE)]


def test_syntax(shell, sandbox):
    assert sandbox.run([*shell.checks, completion_file(shell.file)]) == (0, "", "")


def test_verbs(shell, sandbox):
    there = verbs(sandbox)
    assert shell.complete("berth ") == sorted(there)
    assert shell.complete("berth re") == sorted(verb for verb in there if verb.startswith("re"))
    assert shell.complete("berth help ") == sorted(there)
    assert {"--help", "--version"} <= set(shell.complete("berth --"))


def test_words_that_follow(shell, sandbox):
    for verb, wanted in (("sim", ["place", "queue"]), ("spec", ["check", "schema"])):
        assert words(sandbox, verb) == wanted
        assert shell.complete(f"berth {verb} ") == wanted
        assert shell.complete(f"berth help {verb} ") == wanted


def test_every_option_of_every_verb(shell, sandbox):
    """Completion offers the options that the help shows."""
    there = verbs(sandbox)
    there += [f"{verb} {word}" for verb in ("sim", "spec") for word in words(sandbox, verb)]
    for verb in there:
        wanted = options(sandbox, verb)
        assert sorted(set(wanted)) == [word for word in shell.complete(f"berth {verb} --") if word.startswith("--")], verb


@pytest.mark.parametrize("shell_class", SHELLS, ids=lambda shell: shell.name)
def test_every_option_is_in_every_file(sandbox, shell_class):
    """This test does not need the shell to be installed."""
    text = completion_file(shell_class.file).read_text()
    there = verbs(sandbox)
    there += [f"{verb} {word}" for verb in there for word in words(sandbox, verb)]
    for verb in there:
        if shell_class is Fish:
            condition = rf"'__berth_(?:at|before_word) {verb}'"
            found = re.findall(rf"^complete -c berth -n {condition}(?: -s \w)? -l ([a-z-]+)", text, re.MULTILINE)
        else:
            body = re.search(rf"^_berth_verb_{verb.replace(' ', '_')}\(\).*?^}}", text, re.MULTILINE | re.DOTALL).group()
            found = re.findall(r"(?:^|[ \[,{'*)])--([a-z-]+)", re.sub(r"'\((?:-. )?--[a-z-]+\)'|'\[.*", "", body), re.MULTILINE)
        assert {f"--{name}" for name in found} == set(options(sandbox, verb)), verb
    assert "--complete" not in {f"--{name}" for name in found}


def test_letters(shell):
    assert {"-n", "-v", "-h"} <= set(shell.complete("berth run -"))


CHOICES = {
    "berth run --vendor ": "amd any apple dri intel nvidia",
    "berth run --vendor a": "amd any apple",
    "berth run --vendor=a": "amd any apple",
    "berth submit --sharing ": "exclusive mps time-slice",
    "berth run --scheduling ": "best-effort gang spread",
    "berth reserve --for 1h --scheduling ": "gang spread",
    "berth wait --scheduling ": "gang spread",
    "berth adopt 1 --sharing ": "exclusive time-slice",
    "berth plan --priority ": "high low normal",
    "berth run --policy best-": "best-available best-compute",
    "berth run -n 2 --policy=f": "first frag",
    "berth run -vn 2 --policy=f": "first frag",
    "berth sim queue --policy f": "fgd first frag",
    "berth sim queue --order ": "easy fifo sjf skip",
    "berth sim place --ties ": "name seed",
    "berth cdi --arguments ": "cdi nodes",
    "berth top --sort zz": "",
    "berth top --sort l": "lease left load",
    "berth run --name ": "",
}


def test_choices(shell):
    assert {line: " ".join(shell.complete(line)) for line in CHOICES} == CHOICES


def test_lists(shell, sandbox):
    """A list of policies continues after a comma, without the policies that are already in it."""
    offered = shell.complete("berth sim place --policy first,f")
    assert [word.rpartition(",")[2] for word in offered] == ["fgd", "frag"]


def test_files_and_directories(shell, sandbox):
    place = sandbox.directory / "place"
    (place / "folder").mkdir(parents=True)
    (place / "file.yaml").touch()
    for option in ("run --spec ", "run --spec=", "run --inventory ", "daemon --log ", "spec check ", "sim place --plot "):
        offered = [word.rstrip("/") for word in shell.complete(f"berth {option}f", cwd=place)]
        assert offered == ["file.yaml", "folder"], option
    for option in ("cdi --output ", "daemon --own ", "run --mps-log-dir="):
        assert [word.rstrip("/") for word in shell.complete(f"berth {option}f", cwd=place)] == ["folder"], option


def test_devices_without_a_daemon(shell, sandbox):
    """Completion starts no daemon and uses the inventory of the command line."""
    (sandbox.directory / "two.yaml").write_text(inventory_of(2))
    for option in ("run --device ", "run --avoid=", "drain "):
        for start in ("", "nv"):
            verb, rest = option.split(" ", 1)
            line = f"berth {verb} --inventory two.yaml {rest}{start}"
            assert shell.complete(line) == ["nvidia0", "nvidia1"], line
    assert shell.complete("berth drain --inventory two.yaml nvidia0 ") == ["nvidia1"]  # a device is offered only once
    assert shell.complete("berth drain --inventory two.yaml nvidia0") == ["nvidia0"]
    offered = shell.complete("berth plan --inventory=two.yaml --device nvidia1,nv")
    assert [word.rpartition(",")[2] for word in offered] == ["nvidia0"]
    assert shell.complete("berth plan --device nv") == []  # this machine has no devices
    assert not (sandbox.directory / "run").exists()


def test_ids_without_a_daemon(shell, pool):
    for verb in ("release", "extend", "wait", "logs", "cancel"):
        assert shell.complete(f"berth {verb} ") == []
    assert pool.daemons() == []


def until_offered(shell, line, wanted):
    """Repeat the completion until it offers something. Completion waits only briefly for a daemon,
    so it offers nothing when the daemon is slow."""
    offered = until(lambda: shell.complete(line), f"an offer for {line!r}")
    assert offered == wanted, line


def test_ids_of_leases_and_claims(shell, pool_of):
    pool = pool_of(1)
    holder = pool.hold("--name", "it's: \"held\" [now] \\")
    waiting = pool.berth("submit", "true")
    claim = waiting.stdout.strip()
    try:
        until_offered(shell, "berth release ", [holder.lease])
        assert shell.complete(f"berth release {holder.lease} ") == []
        until_offered(shell, "berth extend ", [holder.lease])
        until_offered(shell, "berth cancel ", [claim])
        until_offered(shell, "berth logs -f ", sorted([holder.lease, claim]))
        until_offered(shell, "berth wait ", sorted([holder.lease, claim]))
    finally:
        pool.berth("cancel", claim)
        pool.let_go(holder)


def test_words_of_ids_are_inert(sandbox, pool_of):
    pool = pool_of(1)
    holder = pool.hold("--name", "tab\there\nline")
    fish = Fish(sandbox)
    try:
        offered = until(lambda: fish.lines("berth release "), "an offer")
        assert offered == [f"{holder.lease}\ttab\ufffdhere\ufffdline"]
    finally:
        fish.close()
        pool.let_go(holder)


STARTS = ["run ", "run -- ", "run -n 2 ", "run --gpus=2 -v -- ", "run -n A100:2 ", "run --name a:b=c ", "run -vn2 ", "submit "]


def test_command_of_run(shell, sandbox):
    """The command behind berth run completes as it does without berth."""
    place = sandbox.directory / "place"
    place.mkdir()
    (place / "some-file").touch()
    (place / "some-program").write_text("#!/bin/sh\n")
    (place / "some-program").chmod(0o755)
    here = {"env": {"PATH": f"{place}:{sandbox.environment['PATH']}"}, "cwd": place}
    for start in STARTS:
        assert "some-program" in shell.complete(f"berth {start}some-p", **here), start
        assert "some-file" in shell.complete(f"berth {start}cat some-f", **here), start
        assert not any(word.startswith("--gpus") for word in shell.complete(f"berth {start}cat --g", **here)), start


def test_completion_of_the_command_itself(shell, sandbox):
    """berth completes its own options when the command of berth run is berth."""
    assert shell.complete("berth run berth stat") == ["status"]
    assert shell.complete("berth run -n 2 -- berth run --vendor a") == ["amd", "any", "apple"]


def test_nothing_for_nonsense(shell):
    assert shell.complete("berth nonsense ") == []
    assert shell.complete("berth devices nonsense") == []


ODD = "it's \"odd\": [a] {b} (c) `d` $e \\f \\\\ %s *?~#;&|<> é ]: \\"


@pytest.fixture
def odd_shell(shell, sandbox):
    shell.path = write_odd_completion(shell, sandbox.directory / "odd")
    assert sandbox.run([*shell.checks, shell.path]) == (0, "", "")
    return shell


def test_odd_help_breaks_nothing(odd_shell):
    assert odd_shell.complete("berth ") == ["odd", "words"]
    assert odd_shell.complete("berth words ") == ["odd"]
    for verb in ("odd", "words odd"):
        wanted = ["--choice", "--flag", "--help", "--value"]
        assert odd_shell.complete(f"berth {verb} --") == wanted
        assert odd_shell.complete(f"berth {verb} --value x -f --choice ") == ["plain", "with-dash"]
        assert odd_shell.complete(f"berth {verb} --value ") == []


def test_odd_help_is_shown_as_it_is(odd_shell):
    if odd_shell.name == "bash":
        pytest.skip("bash shows no help")
    for line in ("berth odd --", "berth ", "berth words "):
        said = {match[1].rstrip() for match in re.finditer("(?:\t|-- )(.*)", "\n".join(odd_shell.lines(line)))}
        assert said - {"show this help"} == {ODD}, line
