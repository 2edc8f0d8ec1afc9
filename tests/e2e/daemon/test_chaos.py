# SPDX-License-Identifier: Apache-2.0
"""Processes of all kinds are killed at any moment, in any order: two commands never use the same
device."""
import os
import random
import signal
import subprocess
import time

import processes
import pytest
from steps import test_steps
from waiting import look, until

# Each command writes its pid, and the pid of a descendant that ignores SIGTERM, into the file of
# each of its devices. Before that, it checks that the processes already listed there have ended.
# Zombies count as ended.
COMMAND = """#!/bin/sh
alive() {
    read -r _ _ state _ <"/proc/$1/stat" && test "$state" != Z
} 2>/dev/null
for device in $(echo "$BERTH_DEVICES" | tr , ' '); do
    for number in $(cat "held/$device" 2>/dev/null); do
        if alive "$number"; then
            echo "$1 has $device beside $number, $(tr '\\0' ' ' <"/proc/$number/cmdline")" >>clashes
        fi
    done
    echo $$ >"held/$device"
done
if test "$2" = family; then
    setsid sh -c 'trap "" TERM HUP
        for device in $(echo "$BERTH_DEVICES" | tr , " "); do echo $$ >>"held/$device"; done
        exec sleep 0.5' &
fi
echo "$1" >>started
exec sleep "$3"
"""
KINDS = [(), ("-n2",), ("--time", "1h"), ("-n3", "--time", "1h"), ("--time", "1s")]


class Chaos:
    def __init__(self, pool, seed):
        self.pool = pool
        self.directory = pool.sandbox.directory
        self.chance = random.Random(seed)
        self.running = []
        self.count = 0
        (self.directory / "held").mkdir()
        (self.directory / "started").touch()
        self.script = self.directory / "command"
        self.script.write_text(COMMAND)
        self.script.chmod(0o700)

    def start(self):
        self.count += 1
        family = self.chance.choice(["alone", "alone", "family"])
        seconds = self.chance.choice(["0", "0.05", "0.3"])
        words = [str(self.script), f"c{self.count}", family, seconds]
        self.running.append(
            subprocess.Popen(
                ["berth", "run", *self.chance.choice(KINDS), "--", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.directory,
                env=self.pool.sandbox.environment,
            )
        )

    def kill_run(self):
        """Kill a waiting berth run, a supervisor, or a command that replaced berth run."""
        victim = self.chance.choice(self.running)
        victim.send_signal(self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))

    def kill_daemon(self):
        for pid in self.pool.daemons():
            os.kill(pid, signal.SIGKILL)
            processes.wait_for_end(pid)

    def step(self):
        self.running = [process for process in self.running if process.poll() is None]
        while len(self.running) < 16:
            self.start()
        self.chance.choice([self.start, self.kill_run, self.kill_run, self.kill_daemon])()
        time.sleep(0.02 * self.chance.random())  # the moment is random

    def finish(self):
        for process in self.running:
            process.wait(60)


@pytest.mark.parametrize("seed", [1])
def test_chaos(pool_of, seed):
    pool = pool_of(4)
    rules = pool.sandbox.home / ".config/berth/berth.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("grace: 100ms\n")
    chaos = Chaos(pool, seed)
    for _ in range(test_steps(120, 4000)):
        chaos.step()
    chaos.finish()
    clashes = chaos.directory / "clashes"
    assert not clashes.exists(), clashes.read_text()
    started = (chaos.directory / "started").read_text().split()
    assert len(started) == len(set(started)), "a command ran twice"
    assert len(started) > chaos.count / 10
    assert pool.berth("run", "-n4", "--wait", "10", "true").code == 0
    until(lambda: look(pool)["leases"] == look(pool)["claims"] == [], "an empty pool")
