# SPDX-License-Identifier: Apache-2.0
"""Reads the daemon's log: each line has a time, a word and key=value pairs."""
import re
from typing import NamedTuple

from programs import TIMEOUT
from waiting import until

LINE = re.compile(r"(?P<time>\d{4}-\S+Z) (?P<word>\w+)(?: (?P<rest>.*))?")
PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\S*)')


class Entry(NamedTuple):
    time: str
    word: str
    values: dict

    @property
    def id(self):
        return int(self.values["id"])


def bare(value):
    """Returns a value without the quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def entries(path):
    """Returns all valid entries, in order. A daemon that was killed may have left half a line."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        match = LINE.fullmatch(line)
        if match:
            values = {key: bare(value) for key, value in PAIR.findall(match["rest"] or "")}
            found.append(Entry(match["time"], match["word"], values))
    return found


def ids(path, word):
    return [entry.id for entry in entries(path) if entry.word == word]


def wait_for(path, word, count=1, timeout=TIMEOUT, **values):
    """Waits until the log has `count` entries with this word and these values, and returns them."""

    def found():
        matching = [e for e in entries(path) if e.word == word and values.items() <= e.values.items()]
        return matching if len(matching) >= count else None

    def what():
        return f"{count} x {word} {values} in the log\n{path.read_text(errors='replace')[-4000:]}\n"

    return until(found, what, timeout)
