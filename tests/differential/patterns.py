"""`python -m tests.differential.patterns --cases 100000`: RE2/J and our patterns, on the same made-up topics.

Both must accept the same patterns and match the same names. Ours may reject what is too large for it alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from multiprocessing import Pool
from random import Random
from typing import NamedTuple

from kgroup.coordinator.consumer.subscription import Resolution
from kgroup.errors import Refused
from kgroup.patterns import compile_regex, matching_topics

from .kafka import Jvm

TOO_LARGE = ("pattern too large", "invalid repetition size", "bad repetition operator: {")
"""What ours says of patterns whose program would be large; RE2/J has no limit (docs/not-built.md)."""
_FOLDED = re.compile(r"\(\?[a-zA-Z]*i.*\\[pP]\{\^?Ll\}", re.DOTALL)
"""RE2/J leaves most capital letters out of the category Ll where case is ignored (docs/not-built.md)."""
MOST_WRITTEN_OUT = 100_000
SHARE = 2_000
TOPICS = 40
LONGEST_STRETCH_S = 0.05
"""Of CPU, in which the coordinator answers nobody."""
LETTERS = "abkszABKSZ019._-"
_ATOMS = r"""
    a b k s z K S Z 0 9 _ - . . . .* [a-z] [^a-z] []a] [^]a] [a-] [.-] [a-k-z] [\d-z] [[:alpha:]]
    [[:^digit:]_] [[:word:]-] [[:nope:]] [a-[:alpha:]] [!-[:alpha:]] [\é] [\_] [^\x00-\x{10FFFF}] [z-a]
    [\Q] [\C] [ ] \d \D \w \W \s \S \b \B \A \z \Z \C \\C \_ \- \. \é \a \f \t \n \r \v \0 \07 \101 \400
    \1 \8 \x61 \x{61} \x{212A} \x{110000} \x{ \x6 \xg \e \E \Qa.b\E \Q \Q\E \ é ſ K 😀 ^ $ \pL \PL \pN
    \p{Lu} \P{Lu} \p{^Ll} \p{Greek} \p{Latin} \p{Han} \p{Any} \p{LC} \p{Cn} \p{Kawi} \p{Adlam} \p{Lu \p
    \pX \p{lu} [\p{Lu}0] [^\PL] [\p{Kawi}] { } {* {+ {{2} {,2} {2 {01} {1,x} \{* x{0} | ) (
"""
_SLOW = ("(.*)", "(a*)*", "(?:.*)", "(.*_)?")
"""Many of them take long to match where groups are extracted, or where all names are matched at once."""
_REPEATS = r"""
    * + ? * + ? * + ? *? +? ?? ** *+ {2} {0} {0,} {1,} {2,3} {3,2} {1000} {1001} {2}? {2}{2} {0,0}
    {99999999999} {2,}
"""
_GROUPS = r"""
    ( (?: ( (?: ( (?: ( (?: (?i)( (?i: (?s: (?m: (?U: (?i-s: (?-i: (?P<n> (?<n> (?P<é> (?P<m_1> (?P<1>
    (?P<> (?P<n (?= (?! (?<= (?> (?P=n)( (?# (?i (?)( (?-)( (?i)(?-i: (?x:
"""


def pattern_of(rng: Random) -> str:
    """A pattern: mostly small and nearly valid, now and then huge or nested deep."""
    kind = rng.random()
    if kind < 0.03:
        piece = rng.choice(_SLOW) if rng.random() < 0.3 else _piece(rng, 2)
        return piece * rng.choice((10, 100, 1000))
    if kind < 0.05:
        depth = rng.choice((10, 100, 300))
        opening = rng.choice(("(", "(?:", "(?i:"))
        return opening * depth + _piece(rng, 1) + rng.choice((")", ")*", ")?", ")|a")) * depth
    if kind < 0.07:
        return "|".join(topic_of(rng) for _ in range(rng.choice((5, 50, 400))))
    text = _piece(rng, rng.choice((1, 2, 2, 3, 4)))
    if rng.random() < 0.15 and text:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("", rng.choice("()[]{}*+?|\\^$-:P<>iC1,"))) + text[at + 1 :]
    return text


def _piece(rng: Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        text = rng.choice(LETTERS) if rng.random() < 0.6 else rng.choice(_ATOMS.split())
    elif rng.random() < 0.35:
        text = rng.choice(_GROUPS.split()) + _piece(rng, depth - 1) + ")"
    else:
        joint = "|" if rng.random() < 0.25 else ""
        text = joint.join(_piece(rng, depth - 1) for _ in range(rng.choice((1, 2, 2, 3))))
    return text + (rng.choice(_REPEATS.split()) if rng.random() < 0.3 else "")


def topic_of(rng: Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 8, 20, 60))))


@dataclass(frozen=True)
class Case:
    """One pattern on both: accepted, rejected, too large here, broken or folded otherwise there."""

    seed: int
    outcome: str
    matched: int = 0
    seconds: float = 0
    difference: str | None = None


def play(kafka: Jvm, seed: int, topics: int = TOPICS) -> Case:
    """One pattern on both sides; the time is ours, compiling and matching."""
    rng = Random(seed)
    pattern, names = pattern_of(rng), sorted({topic_of(rng) for _ in range(topics)})
    began = time.process_time()
    try:
        ours, error = sorted(matching_topics(compile_regex(pattern), names)), ""
    except Refused as refused:
        ours, error = None, (refused.message or "").rpartition("regular expression: ")[2]
    seconds = time.process_time() - began
    too_large = ours is None and error.startswith(TOO_LARGE)
    # RE2/J writes every repetition out, and the JVM would run out of memory.
    if too_large and prod(map(int, re.findall(r"[0-9]{3,8}(?=})", pattern))) > MOST_WRITTEN_OUT:
        return Case(seed, "too large here", seconds=seconds)
    told = kafka.ask({"pattern": pattern, "topics": names})
    if "broken" in told:
        return Case(seed, "broken there", seconds=seconds)
    theirs = sorted(told["matches"]) if "matches" in told else None
    if too_large and theirs is not None:
        return Case(seed, "too large here", seconds=seconds)
    if None not in (theirs, ours) and _FOLDED.search(pattern):
        return Case(seed, "folded otherwise there", seconds=seconds)
    if theirs != ours:
        what = f"{pattern[:300]!r}\n  RE2/J {told.get('error', theirs)}\n  ours  {error or ours}"
        return Case(seed, "different", difference=what)
    return Case(seed, "rejected" if ours is None else "accepted", len(ours or ()), seconds)


def cases(seeds: range, topics: int = TOPICS) -> list[Case]:
    """The cases of these seeds, in order."""
    with Jvm("kgroup.differential.Patterns") as kafka:
        return [play(kafka, seed, topics) for seed in seeds]


def _cases_by(jobs: int, seeds: range) -> Iterator[Case]:
    with Pool(jobs) as pool:
        for share in pool.imap(cases, [seeds[at : at + SHARE] for at in range(0, len(seeds), SHARE)]):
            yield from share


class Slowest(NamedTuple):
    """The most seconds of CPU that a pattern takes, in all and at one stretch, each with its seed."""

    whole: tuple[float, int] = (0.0, 0)
    stretch: tuple[float, int] = (0.0, 0)


def slowest(seeds: range, topics: int = 1_000) -> Slowest:
    """Compile and match each pattern as the coordinator does, which answers others between two stretches."""
    rng = Random(0)
    names = sorted({topic_of(rng) for _ in range(4 * topics)})[:topics]
    worst = Slowest()
    for seed in seeds:
        taken = _stretches(pattern_of(Random(seed)), names)
        worst = Slowest(max(worst.whole, (sum(taken), seed)), max(worst.stretch, (max(taken), seed)))
    return worst


def _stretches(pattern: str, names: list[str]) -> list[float]:
    taken, began = [], time.process_time()
    # A heartbeat compiles the pattern first, to refuse it.
    with suppress(Refused):
        compile_regex(pattern)
        work = Resolution(0, (pattern,), None, names=names)
        more = True
        while more:
            taken.append(time.process_time() - began)
            began = time.process_time()
            more = work.go_on()
    return [*taken, time.process_time() - began]


def main() -> int:
    """Play the cases; 1 when one differs, or holds others up for longer than LONGEST_STRETCH_S."""
    parser = argparse.ArgumentParser(prog="differential.patterns", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--cases", type=int, default=100_000, help="how many patterns")
    parser.add_argument("--jobs", type=int, default=2, help="processes, with a JVM each")
    parser.add_argument("--times", action="store_true", help="measure ours with 1,000 topics instead")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.cases)
    if given.times:
        worst = slowest(seeds)
        print(f"{given.cases} patterns, 1,000 topics, CPU:")
        for what, (seconds, seed) in zip(("one pattern", "one stretch"), worst, strict=True):
            print(f"  at most {seconds * 1000:.1f} ms for {what} (seed {seed})")
        return 1 if worst.stretch[0] > LONGEST_STRETCH_S else 0
    played = list(_cases_by(given.jobs, seeds))
    bad = [case for case in played if case.difference]
    for case in bad[:10]:
        print(f"seed {case.seed}: {case.difference}")
    print(f"{dict(Counter(case.outcome for case in played))}, {sum(c.matched for c in played)} names matched")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
