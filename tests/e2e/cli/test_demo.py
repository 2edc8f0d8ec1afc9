# SPDX-License-Identifier: Apache-2.0
"""The demo of `make run`: it works, it ends, and it leaves nothing behind."""
import os
import re
import signal

import pytest

DEMO_TIMEOUT = 60


@pytest.fixture
def demo(sandbox, source_root):
    """Return the demo's command line and environment; its temporary directory must be empty at the
    end."""
    temporary = sandbox.directory / "temporary"
    temporary.mkdir()
    sandbox.environment["TMPDIR"] = str(temporary)
    sandbox.environment["BERTH"] = os.environ["BERTH"]
    yield [source_root / "tools" / "demo"]
    assert list(temporary.iterdir()) == []
    assert list(sandbox.home.iterdir()) == []


def test_demo_runs(sandbox, demo):
    """The demo ignores the variables that the user's shell may have set."""
    env = {
        "BERTH_INVENTORY": "/nonexistent",
        "BERTH_SOCKET": "/nonexistent",
        "BERTH_LEASE": "7",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = sandbox.run(demo, env=env, timeout=DEMO_TIMEOUT)
    assert (done.code, done.stderr) == (0, ""), done.stdout
    assert "the virtual machine of examples/dgx-a100.yaml" in done.stdout
    assert "exit code" not in done.stdout
    in_order = [
        r"\$ berth devices\nID +MODEL",
        r"\$ berth run -n 4 -- printenv BERTH_DEVICES\nnvidia0,nvidia1,nvidia2,nvidia3\n",
        r"--name train sleep 60 &\nberth: lease ",
        r"--name wide sleep 2 &\nberth: waiting, 1st of 1: ",
        r"--name small sleep 1 &\nberth: waiting, 2nd of 2: ",
        r"8 devices, (none|2) free, 2 claims waiting\n",
        r"8 devices, 2 free, 2 claims waiting\n",
        r"\$ kill -KILL \d+ +# train\nberth: lease 5: nvidia0 nvidia1 nvidia2 nvidia3\n"
        r"\(wide has them \d+ ms after the kill\)\nberth: lease 6: nvidia4\n",
        r"8 devices, .* free, nobody waits\n",
        r"\$ berth logs -f \d+\nworking on nvidia\d\ndone\n",
        r"\$ berth wait -n 8\n",
        r"now: nvidia0,nvidia1,nvidia2,nvidia3,nvidia4,nvidia5,nvidia6,nvidia7\n",
        r"What to type next",
    ]
    assert re.search(".*".join(f"(?s:{words})" for words in in_order), done.stdout, re.DOTALL), done.stdout


def test_demo_on_what_is_here(sandbox, demo, hardware_of):
    """The demo uses the machine's GPUs if there are any, even if there are only a few."""
    hardware_of([0, 1, 2])
    done = sandbox.run(demo, timeout=DEMO_TIMEOUT)
    assert (done.code, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("The demo uses the free GPUs of this machine: 3.\n")
    assert re.search(r"\$ berth devices\nID +MODEL .*\nnvidia0 +A100 ", done.stdout)
    assert "now: nvidia0,nvidia1,nvidia2\n" in done.stdout


def test_demo_where_nothing_is_free(sandbox, demo, hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, health=2), pool.device(1, health=2)])
    with sandbox.start(demo) as program:
        program.wait_for_line("^berth finds 2 GPUs here, but none is free", timeout=DEMO_TIMEOUT)
        program.kill(signal.SIGTERM)
        assert program.wait(timeout=DEMO_TIMEOUT) == 143


@pytest.mark.parametrize("words", ["--name train", "berth wait 3", "working on"])
def test_demo_is_interrupted(sandbox, demo, words):
    """Ctrl-C on a terminal ends the demo at any point. A second Ctrl-C does not disturb the
    cleanup."""
    with sandbox.terminal(demo) as terminal:
        terminal.wait_for(re.escape(words), timeout=DEMO_TIMEOUT)
        terminal.send(b"\x03")
        terminal.send(b"\x03")
        assert terminal.wait(timeout=DEMO_TIMEOUT) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_demo_is_ended(sandbox, demo, number):
    with sandbox.start(demo) as program:
        program.wait_for_line("berth: waiting, 2nd", timeout=DEMO_TIMEOUT)
        program.kill(number)
        assert program.wait(timeout=DEMO_TIMEOUT) == 143
