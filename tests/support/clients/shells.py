# SPDX-License-Identifier: Apache-2.0
"""Completion as people get it: what a real shell offers for a line that is typed so far.

A shell is started for the first line and asked for the others, too, as long as they are typed in the same place."""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from waiting import until

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"


def completion_file(name):
    return Path(os.environ["BERTH_BUILD_ROOT"]) / "tools/completion" / name


def write_odd_completion(shell, directory):
    """The completion of made-up verbs whose help is as odd as can be; see odd_verbs.c."""
    build = Path(os.environ["BERTH_BUILD_ROOT"])
    frame = Path(os.environ["BERTH_SOURCE_ROOT"]) / "tools/completion" / shell.frame
    program = build / "tests/write-odd-completion"
    text = subprocess.run([program, shell.name, frame], check=True, stdout=subprocess.PIPE).stdout
    directory.mkdir()
    (directory / shell.file).write_bytes(text)
    return directory / shell.file


READY = "=ready="


class Shell:
    """What shells have in common. Closing it ends the shell that runs."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.path = completion_file(self.file)
        self.running = None
        self.place = None
        if shutil.which(self.name) is None:
            pytest.skip(f"no {self.name}")

    def in_place(self, env=None, cwd=None):
        """The shell that runs in a directory with changes to the environment."""
        place = (self.path, str(cwd or self.sandbox.directory), {**self.sandbox.environment, **(env or {})})
        if self.place != place:
            self.close()
            self.running = self.start(place[1], env)
            self.place = place
        return self.running

    def close(self):
        if self.running is not None:
            self.end(self.running)
            assert self.running.wait() == 0
        self.running = self.place = None

    # Bash and fish: what they read is answered by lines on their output, errors too, up to a mark.

    def start(self, directory, env):
        words = ["sh", "-c", 'cd "$1" && shift && exec "$@" 2>&1', "sh", directory, *self.words()]
        return self.sandbox.start(words, env=env)

    def end(self, running):
        running.process.stdin.close()
        running.process.stdin = None

    def answer(self, asked, **options):
        """The lines that are said to something that is asked."""
        running = self.in_place(**options)
        before = len(running.output["stdout"])
        running.send(asked + "\n")
        running.wait_for_line(f"^{READY}$")
        return bytes(running.output["stdout"][before:]).decode(errors="replace").split("\n")[:-2]


class Bash(Shell):
    name = "bash"
    file = "berth"
    frame = "berth.bash"
    checks = ["bash", "-n"]

    def __init__(self, sandbox):
        super().__init__(sandbox)
        if not os.path.exists(BASH_COMPLETION):
            pytest.skip("no bash-completion")

    def words(self):
        # Each is completed in a shell of its own, so that nothing is left of the one before.
        script = [
            f"source {BASH_COMPLETION}",
            f"source {self.path}",
            "compopt() { :; }",
            f'while IFS= read -r asked; do (eval "$asked"); echo {READY}; done',
        ]
        return ["bash", "--norc", "-c", "\n".join(script)]

    def complete(self, line, **options):
        """bash splits lines at blanks, and at ':' and '=', which become words."""
        words = re.findall(r"[:=]+|(?:\\.|[^\s:=])+", line) + ([""] if line.endswith(" ") else [])
        script = [
            f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_CWORD={len(words) - 1}",
            f"COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_TYPE=9",
            '_berth "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" </dev/null',
            "printf '%s\\n' \"${COMPREPLY[@]}\"",
        ]
        return sorted(filter(None, (word.rstrip() for word in self.answer("; ".join(script), **options))))


ZSHRC = """
PROMPT= RPROMPT=
unsetopt beep auto_list auto_menu  # it would ask whether to list many
fpath=(%(functions)s $fpath)
autoload -Uz compinit
compinit -u -D
# What is offered is written down; asking for the matches is what completion functions do among themselves.
compadd() {
  local -a offered
  if [[ ${argv[(I)-[OAD]*]} -eq 0 ]]; then
    builtin compadd -A offered "$@"
    print -rl -- $offered >>%(offers)s
    local shown=${argv[(i)-*d]}
    (( shown > $#argv )) || print -rl -- ${(P)argv[shown + 1]} >>%(offers)s.shown
  fi
  builtin compadd "$@"
}
tell() { zle complete-word; BUFFER=; print -r -- "%(ready)s" >>%(offers)s }
zle -N tell
bindkey '^T' tell
print -r -- "%(ready)s" >>%(offers)s
"""


class Zsh(Shell):
    name = "zsh"
    file = frame = "_berth"
    checks = ["zsh", "-n"]

    def start(self, directory, env):
        """zsh completes only where somebody types: on a terminal."""
        text = ZSHRC % {"functions": self.path.parent, "offers": self.offers, "ready": READY}
        (self.sandbox.home / ".zshrc").write_text(text)
        words = ["sh", "-c", 'cd "$1" && exec zsh -d -i', "sh", directory]
        running = self.sandbox.terminal(words, columns=500, env=env)
        self.await_ready()
        return running

    def end(self, running):
        running.send("\x04")

    @property
    def offers(self):
        return self.sandbox.directory / "offers"

    def await_ready(self):
        """What was offered up to the mark."""

        def offered():
            text = self.offers.read_text() if self.offers.exists() else ""
            return text if text.endswith(f"{READY}\n") else None

        return until(offered, "a prompt")[: -len(READY) - 1]

    def lines(self, line):
        """What is shown, with what is said of it."""
        self.complete(line)
        return (self.sandbox.directory / "offers.shown").read_text().splitlines()

    def complete(self, line, **options):
        running = self.in_place(**options)
        self.offers.write_text("")
        (self.sandbox.directory / "offers.shown").write_text("")
        running.send(line + "\x14")
        return sorted({word.rstrip() for word in self.await_ready().split("\n") if word})


class Fish(Shell):
    name = "fish"
    file = frame = "berth.fish"
    checks = ["fish", "--no-execute"]

    def words(self):
        script = f"source {self.path}; while read -l line; complete -C $line </dev/null; echo {READY}; end"
        return ["fish", "--no-config", "-c", script]

    def lines(self, line, **options):
        """What is offered, with what is said of it behind a tab."""
        return self.answer(line, **options)

    def complete(self, line, **options):
        """fish offers an option with its value as a whole."""
        offered = (word.partition("\t")[0] for word in self.lines(line, **options))
        return sorted({re.sub("^--[a-z-]+=(?=.)", "", word) for word in offered})


SHELLS = (Bash, Zsh, Fish)
