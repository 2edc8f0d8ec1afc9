# SPDX-License-Identifier: Apache-2.0
"""Manual pages: every verb has one, they name every option, are formatted correctly, and refer to
existing pages."""
import os
import re
import shutil
from pathlib import Path

import pytest
from shells import completion_file

pytestmark = pytest.mark.skipif(shutil.which("scdoc") is None, reason="no scdoc")


@pytest.fixture
def pages():
    """Return all installed manual pages, by name."""
    there = {path.name: path for path in (Path(os.environ["BERTH_BUILD_ROOT"]) / "man").glob("*.[1-8]")}
    assert len(there) >= 26
    return there


def alias_of(page):
    """Return the page that this page is an alias of, or None."""
    found = re.fullmatch(r"\.so man\d/(\S+)\n", page.read_text())
    return found and found[1]


def source_of(pages, source_root, name):
    """Return the source text of a verb's page."""
    page = pages[f"berth-{name}.1"]
    return (source_root / "man" / f"{alias_of(page) or page.name}.scd").read_text()


def verbs(sandbox):
    found = re.findall(r"^  ([a-z]+) ", sandbox.run(["berth", "help"]).stdout, re.MULTILINE)
    assert len(found) >= 19
    return found


def test_every_verb_has_a_page(sandbox, pages, source_root):
    for verb in verbs(sandbox):
        text = source_of(pages, source_root, verb)
        synopsis = text.partition("# SYNOPSIS")[2].partition("\n# ")[0]
        assert re.search(rf"^\*(berth(\* \*| ){verb}|berthd)\b", synopsis, re.MULTILINE), verb


def options(sandbox, verb):
    """Return the options of a verb and of its subcommands, each with its letter or ""."""
    shown = sandbox.run(["berth", "help", verb]).stdout
    words = re.findall(r"^  ([a-z]+) ", shown.partition("\nSubcommands:\n")[2].partition("\n\n")[0], re.MULTILINE)
    shown += "".join(sandbox.run(["berth", "help", verb, word]).stdout for word in words)
    found = re.findall(r"^(?:  (-\w), |      )(--[a-z-]+)", shown, re.MULTILINE)
    return {option: letter for letter, option in found}


def test_every_option_is_in_its_page(sandbox, pages, source_root):
    """Help is generated from the tables; the pages are written by hand."""
    for verb in verbs(sandbox):
        text = source_of(pages, source_root, verb)
        if "The request is that of *berth-run*(1)" in text:
            text += source_of(pages, source_root, "run")
        for option, letter in options(sandbox, verb).items():
            assert f"*{option}*" in text, f"{verb} {option}"
            assert not letter or f"*{letter}*, *{option}*" in text, f"{verb} {letter}"


def test_every_option_of_a_page_is_there(sandbox, pages, source_root):
    """The pages name no option that does not exist."""
    there = {}
    for verb in verbs(sandbox):
        there.setdefault(source_of(pages, source_root, verb), {"--help", "--version"}).update(options(sandbox, verb))
    for text, known in there.items():
        told = text.partition("# OPTIONS\n")[2].partition("\n# ")[0]
        found = set(re.findall(r"^(?:\*-\w\*, )?\*(--[a-z-]+)\*", told, re.MULTILINE))
        assert found <= known, (text.partition("\n")[0], found - known)


def test_every_choice_is_in_its_page(pages, source_root):
    """The values of an option are read from fish's completion, which is generated from the tables."""
    rows = re.findall(
        r"^complete -c berth -n '__berth_at ([a-z]+)(?: [a-z]+)?'(?: -s \w)? -l ([a-z-]+) -x -a '([a-z -]+)'",
        completion_file("berth.fish").read_text(),
        re.MULTILINE,
    )
    assert {("top", "sort"), ("run", "sharing"), ("sim", "order")} <= {row[:2] for row in rows}
    for verb, option, choices in rows:
        text = source_of(pages, source_root, verb)
        if "The request is that of *berth-run*(1)" in text:
            text += source_of(pages, source_root, "run")
        if "see *POLICIES* in *berth-plan*(1)" in text:
            text += source_of(pages, source_root, "plan")
        for choice in choices.split():
            assert f"*{choice}*" in text, f"{verb} --{option} {choice}"


def test_every_page_of_a_verb_has_its_sections(sandbox, pages, source_root):
    """The sections are in the usual order of manual pages, with the exit status and an example."""
    for verb in verbs(sandbox):
        sections = re.findall("^# (.*)", source_of(pages, source_root, verb), re.MULTILINE)
        usual = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
        assert [section for section in sections if section in usual] == [
            section for section in usual if verb not in ("help", "daemon") or section in sections
        ], verb


def test_aliases_lead_to_pages(pages):
    aliases = {name: alias_of(path) for name, path in pages.items() if alias_of(path)}
    assert len(aliases) >= 6
    for name, page in aliases.items():
        assert alias_of(pages[page]) is None, name


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_pages_look_right(sandbox, pages):
    """The formatter prints no warning."""
    for path in pages.values():
        if not alias_of(path):
            done = sandbox.run(["groff", "-man", "-K", "utf8", "-T", "utf8", "-ww", "-rLL=100n", path])
            assert (done.code, done.stderr) == (0, ""), done.stderr
            assert len(done.stdout) > 500


def test_references_lead_somewhere(pages, source_root):
    """Every page that a page refers to exists. berth's pages exist in the named section."""
    for path in (source_root / "man").glob("*.scd"):
        text = path.read_text()
        found = re.findall(r"\*((?:lib)?berth[a-z.-]*)\*\((\d)\)", text)
        for name, section in found:
            assert f"{name}.{section}" in pages, f"{path.name} refers to {name}({section})"
        seen = re.findall(r"\*([a-z.-]+)\*\((\d)\)", text.partition("# SEE ALSO")[2])
        assert path.stem.rpartition(".")[0] not in {name for name, _ in seen}, path.name
        assert seen, f"{path.name} has no SEE ALSO"
