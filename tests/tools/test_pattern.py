# SPDX-License-Identifier: Apache-2.0
"""The patterns in the schema of spec files accept the same texts as berth's own parsers.

This test uses Python's `re`. Another test checks that the patterns use only what ECMA-262 and Python
have in common.
"""
import os
import random
import re
import subprocess

import pytest

LARGEST = 2**63 - 1


def judge(kind, least, most, texts):
    """Return the compiled pattern, and for each text whether the parser accepts it."""
    texts = list(texts)
    assert not any("\n" in text or "\0" in text for text in texts)
    done = subprocess.run(
        [os.environ["JUDGE_PATTERN"], kind, str(least), str(most)],
        input="".join(f"{text}\n" for text in texts),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    pattern, *words = done.stdout.splitlines()
    assert len(words) == len(texts)
    return pattern, dict(zip(texts, (word == "1" for word in words)))


def compare(kind, least, most, texts, canonical=False):
    """Fail for texts that pattern and parser judge differently; both must accept some and refuse
    some."""
    pattern, verdicts = judge(kind, least, most, texts)
    matches = re.compile(pattern).search
    wrong = []
    for text, taken in verdicts.items():
        if canonical:  # the parsers accept leading zeros, which files may not have
            taken = taken and not re.search(r"(?<![0-9])0[0-9]", text)
        if bool(matches(text)) != taken:
            wrong.append((text, taken))
        if matches(text + "\n"):
            wrong.append((text + "\n", False))
    assert not wrong, (pattern, wrong[:20])
    assert len(set(verdicts.values())) == 2


@pytest.mark.parametrize(
    "least, most",
    [(0, 0), (0, 7), (0, 9), (0, 10), (1, 1), (1, 9), (1, 10), (3, 8), (7, 123), (10, 99), (10, 100), (99, 101)]
    + [(1, 1000), (100, 1099), (101, 2345), (999, 1000), (1234, 1239), (1299, 2301), (2000, 2999), (5, 2500)],
)
def test_whole_numbers(least, most):
    texts = [str(number) for number in range(3500)]
    texts += [f"0{number}" for number in range(300)] + ["", "-1", "+1", " 1", "1 ", "1.0", "1e1", "x", "٣", "1٣"]
    compare("whole", least, most, texts, canonical=True)


@pytest.mark.parametrize("most", [65535, 1000000, 2**32 - 1, LARGEST, 2**64 - 1])
def test_large_whole_numbers(most):
    numbers = {0, 1, 2, 9, 10, 10**19, 10**20, 10**25}
    for power in range(21):
        numbers |= {abs(10**power + d) for d in (-1, 0, 1)} | {max(most // 10**power + d, 0) for d in (-1, 0, 1)}
        numbers |= {most + d * 10**power for d in (-1, 1) if most + d * 10**power >= 0}
    seeded = random.Random(most)
    numbers |= {seeded.randrange(10 ** seeded.randrange(1, 22)) for _ in range(2000)}
    compare("whole", 1, most, map(str, sorted(numbers)))


def test_small_ranges_in_full():
    texts = [f"{one}-{other}" for one in range(115) for other in range(115)]
    compare("elastic", 1, 1000000, texts)
    compare("elastic", 1, 104, texts)
    compare("elastic", 3, 99, texts)


def test_ranges_of_all_lengths():
    seeded = random.Random(7)
    texts = {"-", "1", "1-", "-1", "1-2-3", "1--2", "1 -2", "1- 2", "02-4", "2-04", "all", "2-٣", "1-9999999", ""}
    for _ in range(20000):
        one = seeded.randrange(10 ** seeded.randrange(1, 8))
        near = one + seeded.choice((-1, 0, 1, 10, -10, 100, -1000, 10**5))
        texts.add(f"{one}-{seeded.choice((near, seeded.randrange(10 ** seeded.randrange(1, 8))))}")
    for edge in (999998, 999999, 1000000, 1000001):
        texts |= {f"{edge}-{edge + d}" for d in range(-2, 3)} | {f"{n}-{edge}" for n in (0, 1, 9, 10, 99999)}
    compare("elastic", 1, 1000000, sorted(texts), canonical=True)


@pytest.mark.parametrize("kind", ["whole", "elastic"])
def test_the_language_is_common(kind):
    """The patterns use nothing that ECMA-262 lacks, with or without its flag u, or that has
    another meaning there."""
    pattern, _ = judge(kind, 1, LARGEST, [])
    for escape in re.findall(r"\\.", pattern):
        assert escape in (r"\.", r"\n", r"\1", r"\2"), escape
    for group in re.findall(r"\(\?.{1,2}", pattern):
        assert group[:3] in ("(?:", "(?=", "(?!"), group
    assert not re.search(r"[*+?}]\+|\{,|\\[0-9][0-9]", pattern)
    assert not re.search(r"(?<!\(\?)(?<!\[)\b[A-Z]", re.sub(r"\[[^]]*\]", "", pattern))
    assert pattern.startswith("^") and pattern.endswith(r"$(?!\n)")
