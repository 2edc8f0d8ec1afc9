# SPDX-License-Identifier: Apache-2.0
"""berth as a whole: verbs, help, version, and errors in the command line."""
import os
import re
import signal
import subprocess

import pytest


def berth(sandbox, *args, **options):
    return sandbox.run(["berth", *args], **options)


def one_line(text):
    """Check that the text is exactly one line of berth, and return this line."""
    assert text.startswith("berth: ") and text.count("\n") == 1 and text.endswith("\n"), repr(text)
    return text[len("berth: ") : -1]


VERBS = (
    "run submit logs wait reserve adopt status top web devices plan history report extend release cancel drain undrain"
    " daemon doctor spec cdi sim help"
).split()


def test_version(sandbox):
    done = berth(sandbox, "--version")
    assert re.fullmatch(r"berth \d+\.\d+\.\d+\n", done.stdout)
    assert (done.code, done.stderr) == (0, "")


@pytest.mark.parametrize("args", [["help"], ["--help"], ["-h"]])
def test_help_lists_every_verb(sandbox, args):
    done = berth(sandbox, *args)
    assert (done.code, done.stderr) == (0, "")
    verbs = re.findall(r"^  ([a-z]+) ", done.stdout, re.MULTILINE)
    assert verbs == VERBS
    for verb in verbs:
        assert berth(sandbox, verb, "--help").code == 0
    assert re.findall(r"^([A-Z].*):$", done.stdout, re.MULTILINE) == ["Run jobs", "Look", "Manage", "Set up"]


WORDS = ("spec check", "spec schema", "sim place", "sim queue")


@pytest.mark.parametrize("verb", [*VERBS, *WORDS])
def test_help_of_a_verb(sandbox, verb):
    done = berth(sandbox, "help", *verb.split())
    assert done.code == 0
    assert re.match(rf"Usage: berth {verb}[ \n]", done.stdout)
    assert done == berth(sandbox, *verb.split(), "-h") == berth(sandbox, *verb.split(), "--help")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def help_texts(shown):
    """Return the help of every option, each as one line."""
    rows = re.findall(r"^(?: {6}|  -\w, )(--[a-z-]+)(.*\n(?: {29}.*\n)*)", shown, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^(?: {6}|  -\w, )--", shown, re.MULTILINE))
    return {name: re.sub(r"^ \S+$|^ \S+(?=  )", "", text, count=1, flags=re.MULTILINE).split() for name, text in rows}


@pytest.mark.parametrize("verb", [*VERBS, *WORDS])
def test_help_of_an_option_is_short(sandbox, verb):
    texts = help_texts(berth(sandbox, *verb.split(), "--help").stdout)
    assert {name: words for name, words in texts.items() if not 2 <= len(words) <= 12} == {}


def test_summaries_are_short(sandbox):
    shown = berth(sandbox, "help", env={"COLUMNS": "96"}).stdout
    summaries = re.findall(r"^  [a-z]+ +(.*)", shown, re.MULTILINE)
    assert len(summaries) == len(VERBS)
    assert [summary for summary in summaries if len(summary.split()) > 10] == []


# What some verbs refuse, and so do not offer, and what --spec gives to each.
OFFERS = {
    "run": ("gang (default), spread or best-effort", "exclusive (default), mps or time-slice", "request and the command"),
    "submit": ("gang (default), spread or best-effort", "exclusive (default), mps or time-slice", "request and the command"),
    "plan": ("gang (default), spread or best-effort", "exclusive (default), mps or time-slice", "read the request from"),
    "reserve": ("gang (default) or spread", "exclusive (default), mps or time-slice", "read the request from"),
    "wait": ("gang (default) or spread", "exclusive (default), mps or time-slice", "read the request from"),
    "adopt": (None, "exclusive (default) or time-slice", "read the request from"),
}


@pytest.mark.parametrize("verb", OFFERS)
def test_a_verb_offers_only_values_that_it_takes(sandbox, verb):
    texts = {name: " ".join(words) for name, words in help_texts(berth(sandbox, verb, "--help").stdout).items()}
    for option, offer in zip(("--scheduling", "--sharing", "--spec"), OFFERS[verb]):
        assert (option in texts) == (offer is not None)
        assert offer is None or offer in texts[option]


# The options of a request that only some verbs accept.
NOT_FOR_ALL = {
    "replicas": {"run", "submit", "reserve", "wait", "plan"},
    "scheduling": {"run", "submit", "reserve", "wait", "plan"},
    "mps-pipe-dir": {"run", "submit", "reserve", "wait", "plan"},
    "mps-log-dir": {"run", "submit", "reserve", "wait", "plan"},
    "wait": {"run", "submit", "reserve", "wait", "adopt"},
    "nonblock": {"run", "submit", "reserve", "wait", "adopt"},
    "pin": {"run", "submit"},
    "label": {"run", "submit"},
    "ranks": {"run", "submit"},
    "rank-mask": {"run", "submit"},
    "backend": {"run", "submit"},
    "master-port": {"run", "submit"},
    "interface": {"run", "submit"},
    "uuid": {"run", "submit", "reserve"},
    "or-cpu": {"run"},
}


@pytest.mark.parametrize("verb", ["run", "submit", "reserve", "wait", "plan", "adopt"])
def test_a_verb_lists_and_takes_only_its_own_options(sandbox, verb):
    listed = set(re.findall(r"^ .*--([a-z-]+)", berth(sandbox, verb, "--help").stdout, re.MULTILINE))
    for option, verbs in NOT_FOR_ALL.items():
        assert (option in listed) == (verb in verbs), option
        if verb not in verbs:
            done = berth(sandbox, verb, f"--{option}")
            assert done.code == 2
            assert re.fullmatch(rf"berth: {verb}: --{option}: an option of berth [a-z, ]+ only\n", done.stderr)


@pytest.mark.parametrize("columns, least, most", [(20, 30, 50), (60, 50, 60), (90, 80, 90), (500, 80, 96)])
def test_help_fits_the_terminal(sandbox, columns, least, most):
    done = berth(sandbox, "plan", "--help", env={"COLUMNS": columns})
    assert least < max(len(line) for line in done.stdout.splitlines()) <= most


def test_help_goes_before_what_follows(sandbox):
    assert berth(sandbox, "plan", "--help", "--nonsense").code == 0
    assert berth(sandbox, "plan", "--nonsense", "--help").code == 2


@pytest.mark.parametrize(
    "args, wanted",
    [
        ([], "expected a verb, got none ('berth help' lists them)"),
        (["devcies"], "no verb 'devcies', did you mean 'devices'?"),
        (["xyzzy"], "no verb 'xyzzy' ('berth help' lists them)"),
        (["kill", "3"], "no verb 'kill', did you mean 'cancel'?"),
        (["stop", "3"], "no verb 'stop', did you mean 'cancel'?"),
        (["ps"], "no verb 'ps', did you mean 'status'?"),
        (["queue"], "no verb 'queue', did you mean 'status'?"),
        (["list"], "no verb 'list', did you mean 'status'?"),
        (["help", "paln"], "no verb 'paln', did you mean 'plan'?"),
        (["help", "sim", "plaec"], "sim: no subcommand 'plaec', did you mean 'place'?"),
        (["help", "spec", "xyzzy"], "spec: no subcommand 'xyzzy' (--help lists them)"),
        (["a\nb\x1b[31m"], "no verb 'a?b?[31m' ('berth help' lists them)"),
        (["devices", "--jsn"], "devices: no option '--jsn' here, did you mean --json?"),
        (["devices", "-x"], "devices: no option '-x' here (--help lists them)"),
        (["devices", "--json=yes"], "devices: --json: takes no value, got 'yes'"),
        (["devices", "nvidia0"], "devices: expected only options, got 'nvidia0'"),
        (["devices", "--inventory"], "devices: --inventory: expected FILE, got nothing"),
        (["devices", "--inventory", "none.yaml"], "devices: cannot read none.yaml: No such file or directory"),
        (["devices", "--inventory", "."], "devices: cannot read .: it is a directory"),
        (["devices", "--inventory", ""], "devices: --inventory: expected a file, got nothing"),
    ],
)
def test_wrong_usage_is_one_line_and_2(sandbox, args, wanted):
    done = berth(sandbox, *args)
    assert one_line(done.stderr) == wanted
    assert (done.code, done.stdout) == (2, "")


@pytest.mark.parametrize("args", [["help"], ["--version"], ["devices"], ["devices", "--json"], ["plan"]])
def test_full_disk_is_125(sandbox, args):
    done = sandbox.run(["sh", "-c", 'exec berth "$@" >/dev/full', "sh", *args])
    assert one_line(done.stderr) == "cannot write standard output: No space left on device"
    assert done.code == 125


def test_reader_that_goes_away(sandbox):
    """Like other filters, berth ends by SIGPIPE and prints nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    program = subprocess.run(
        [os.environ["BERTH"], "help"], stdout=writer, stderr=subprocess.PIPE, env=sandbox.environment
    )
    os.close(writer)
    assert (program.returncode, program.stderr) == (-signal.SIGPIPE, b"")


def test_sim_is_a_program_of_its_own(sandbox):
    own = sandbox.run(["berth-sim", "--help"])
    assert own.code == 0 and own.stdout
    assert berth(sandbox, "sim", "--help") == own


def test_daemon_is_a_program_of_its_own(sandbox):
    own = sandbox.run(["berthd", "--help"])
    assert own.code == 0 and own.stdout
    assert berth(sandbox, "daemon", "--help") == own
