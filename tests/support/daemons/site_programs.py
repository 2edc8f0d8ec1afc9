# SPDX-License-Identifier: Apache-2.0
"""A prolog, an epilog and a program for notices, as whoever runs a machine writes them, and what they were told.

All are one shell script, which does what files in its directory say:

    hold.EVENT, hold.EVENT.DEVICE    it does not end while the file is there
    do.EVENT, do.EVENT.DEVICE        lines of shell that it runs at its end
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
        """Writes the rules of the pool's daemon: these programs, and more keys."""
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
        """From now on; None: nothing more."""
        path = self.directory / f"do.{name}"
        if text is None:
            path.unlink()
        else:
            new = path.with_name("new")
            new.write_text(text)
            os.replace(new, path)

    def lines(self, *pattern):
        """What they logged, as lists of words: those whose first words are as given."""
        text = self.log.read_text() if self.log.exists() else ""
        words = [line.split(" ") for line in text.splitlines()]
        return [line for line in words if all(a in (None, b) for a, b in zip(pattern, line))]

    def until(self, *pattern, count=1):
        """Waits for so many such lines, and returns them."""

        def found():
            lines = self.lines(*pattern)
            return lines if len(lines) >= count else None

        return until(found, lambda: f"{count} x {pattern} among {self.lines()}")

    def environment(self, name):
        text = (self.directory / f"env.{name}").read_text()
        return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
