# SPDX-License-Identifier: Apache-2.0
"""A prolog, an epilog and a notification program, as an administrator writes them, and the log of their calls.

All three are one shell script. Files in its directory control it:

    hold.EVENT, hold.EVENT.DEVICE    the script waits while this file exists
    do.EVENT, do.EVENT.DEVICE        shell commands that the script runs before it ends
"""
import os
import re

from waiting import until

SCRIPT = """#!/bin/sh
cd '{directory}' || exit 99
this=$BERTH_EVENT${{BERTH_DEVICE:+.$BERTH_DEVICE}}
env >"env.$this.$$" && mv "env.$this.$$" "env.$this"
echo "begin $BERTH_EVENT ${{BERTH_DEVICE-$BERTH_DEVICES}} ${{BERTH_LEASE-none}} $$ $*" >>log
while [ -e "hold.$BERTH_EVENT" ] || [ -e "hold.$this" ]; do sleep 0.01; done
for file in "do.$BERTH_EVENT" "do.$this"; do
    [ ! -e "$file" ] || . "./$file"
done
echo "end $BERTH_EVENT ${{BERTH_DEVICE-$BERTH_DEVICES}} ${{BERTH_LEASE-none}} $$" >>log
"""


class SitePrograms:
    def __init__(self, sandbox):
        self.directory = sandbox.directory / "site"
        self.directory.mkdir()
        self.program = self.directory / "program"
        self.program.write_text(SCRIPT.format(directory=self.directory))
        self.program.chmod(0o700)
        self.rules = sandbox.home / ".config/berth/berth.yaml"
        self.rules.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "log"

    def configure(self, *events, deadline="20s", **rules):
        """Writes the configuration of the pool's daemon, with these programs and other keys."""
        lines = [f"{key}: {value}\n" for key, value in rules.items()]
        for event in events:
            words = f"[{self.program}, --for, {event}]"
            lines.append(f"{event}: {words if event == 'notify' else f'{{command: {words}, deadline: {deadline}}}'}\n")
        self.rules.write_text("".join(lines))

    def hold(self, name):
        (self.directory / f"hold.{name}").touch()

    def let_go(self, name):
        (self.directory / f"hold.{name}").unlink()

    def does(self, name, text):
        """Sets the shell commands of do.NAME; None removes them."""
        path = self.directory / f"do.{name}"
        if text is None:
            path.unlink()
        else:
            new = path.with_name("new")
            new.write_text(text)
            os.replace(new, path)

    def lines(self, *pattern):
        """Returns the log's lines that begin with these words, as lists of words. None matches any word."""
        text = self.log.read_text() if self.log.exists() else ""
        words = [line.split(" ") for line in text.splitlines()]
        return [line for line in words if all(a in (None, b) for a, b in zip(pattern, line))]

    def until(self, *pattern, count=1):
        """Waits until `count` lines begin with these words, and returns the lines."""

        def found():
            lines = self.lines(*pattern)
            return lines if len(lines) >= count else None

        return until(found, lambda: f"{count} x {pattern} among {self.lines()}")

    def environment(self, name):
        text = (self.directory / f"env.{name}").read_text()
        return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
