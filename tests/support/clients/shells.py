# SPDX-License-Identifier: Apache-2.0
"""Real shells that complete a line, as users see it.

A shell starts for the first line. It also completes the next lines if they have the same directory and environment."""
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
    """Writes the completion file of made-up verbs with odd help texts (odd_verbs.c), and returns its path."""
    build = Path(os.environ["BERTH_BUILD_ROOT"])
    frame = Path(os.environ["BERTH_SOURCE_ROOT"]) / "tools/completion" / shell.frame
    program = build / "tests/write-odd-completion"
    text = subprocess.run([program, shell.name, frame], check=True, stdout=subprocess.PIPE).stdout
    directory.mkdir()
    (directory / shell.file).write_bytes(text)
    return directory / shell.file


READY = "=ready="


class Shell:
    """The common part of all shells. close() ends the running shell."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.path = completion_file(self.file)
        self.running = None
        self.place = None
        if shutil.which(self.name) is None:
            pytest.skip(f"no {self.name}")

    def in_place(self, env=None, cwd=None):
        """Returns a shell that runs in this directory, with these changes to the environment."""
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

    # Bash and fish read requests from their input. All output, including errors, up to the line READY is the answer.

    def start(self, directory, env):
        words = ["sh", "-c", 'cd "$1" && shift && exec "$@" 2>&1', "sh", directory, *self.words()]
        return self.sandbox.start(words, env=env)

    def end(self, running):
        running.process.stdin.close()
        running.process.stdin = None

    def answer(self, asked, **options):
        """Returns the lines that the shell prints for a request."""
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
        # A subshell completes each line, so that no state remains for the next line.
        script = [
            f"source {BASH_COMPLETION}",
            f"source {self.path}",
            "compopt() { :; }",
            f'while IFS= read -r asked; do (eval "$asked"); echo {READY}; done',
        ]
        return ["bash", "--norc", "-c", "\n".join(script)]

    def complete(self, line, **options):
        """Returns the completions of a line. bash splits it at blanks, and at ':' and '=', which become words."""
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
unsetopt beep auto_list auto_menu  # zsh would ask whether to list many matches
fpath=(%(functions)s $fpath)
autoload -Uz compinit
compinit -u -D
# Log the offered matches. With -O, -A or -D, completion functions only collect matches for themselves.
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
        """Starts zsh on a terminal, because it completes nowhere else."""
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
        """Waits for the line READY, and returns the offers before it."""

        def offered():
            text = self.offers.read_text() if self.offers.exists() else ""
            return text if text.endswith(f"{READY}\n") else None

        return until(offered, "a prompt")[: -len(READY) - 1]

    def lines(self, line):
        """Returns the matches as zsh shows them, with their descriptions."""
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
        """Returns the matches, each with a tab and its description."""
        return self.answer(line, **options)

    def complete(self, line, **options):
        """Returns the completions of a line. fish repeats the option before its value; this removes the option."""
        offered = (word.partition("\t")[0] for word in self.lines(line, **options))
        return sorted({re.sub("^--[a-z-]+=(?=.)", "", word) for word in offered})


SHELLS = (Bash, Zsh, Fish)
