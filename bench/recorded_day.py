"""What does a question about a moment read of a busy day that `kgroup record` stored?

    python -m bench recorded_day [groups=500] [partitions=4] [looks=8640]

Each group has a topic and a member, and before each look a commit in each partition and records behind it:
all numbers differ from the look before. Files are cut as at a URL. Processor time is the whole command's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

from kgroup.admin.diagnose.doctor import Alike, Checkup
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.models import GroupDescription, Member, OffsetRow
from kgroup.admin.read.lag_report import PartitionLag, of_rows
from kgroup.admin.recording.gaps import gaps_in
from kgroup.admin.recording.lines import Began
from kgroup.admin.recording.look import Known, Look, Terms
from kgroup.admin.recording.observed import Observed
from kgroup.admin.recording.then import at, today_in
from kgroup.admin.statuses import OK, READING
from kgroup.domain import place_of
from kgroup.history.fold.removals import Today
from kgroup.history.sources.folders import PART_BYTES, LocalFolder

BEGAN_MS, STEP_MS = 20_000 * 86_400_000, 10_000
TOPIC_ID = "A" * 22


def looks_of(groups: int, partitions: int, looks: int) -> Iterator[Look]:
    """Yield the looks of a day, in turn."""
    names = {f"group-{number:03}": f"topic-{number:03}" for number in range(groups)}
    for look in range(looks):
        offset, end, at_ms = 1000 + 20 * look, 1003 + 20 * look, BEGAN_MS + look * STEP_MS
        checkups, facts, lags, starts = {}, {}, {}, {}
        for name, topic in names.items():
            owner = Member(f"{name}-0123456789abcdef", None, "c", "/10.0.0.1", None, "range", None, None)
            rows, behind = [], []
            for number in range(partitions):
                of = (topic, number, offset, end, 3)
                more = {"last_stable_offset": end, "status": READING, "unreadable": 0}
                rows.append(OffsetRow(*of, None, None, owner.member_id, None, **more))
                behind.append(PartitionLag(*of, 250, None, None, None, owner.member_id, None, **more))
                starts[place_of(topic, number)] = 0
            sums = {"total_lag": 3 * partitions, "lag_at_least": 3 * partitions}
            known = {"members": (owner,), "offsets": tuple(rows)}
            group = GroupDescription(name, "classic", "consumer", "Stable", **known, **sums)
            alike = Alike(READING.name, OK, tuple(f"{topic}-{number}" for number in range(partitions)), "")
            checkups[name] = Checkup(group, (), (), (alike,))
            facts[name] = Facts(group, at_ms, at_ms, 0.0)
            lags[name] = of_rows(group, tuple(behind))
        world = Today(dict.fromkeys(names.values(), TOPIC_ID), 600_000, at_ms)
        yield Look(at_ms, checkups, facts, lags=lags, starts=starts, world=world)


def store(folder: LocalFolder, looks: Iterator[Look]) -> None:
    """Store looks as a recorder does."""
    observed, known = Observed(folder), Known()
    for look in looks:
        first = []
        if begin := observed.begin_at(look.at_ms):
            known, first = Known(), [Began(look.at_ms, "0", None, look.at_ms > BEGAN_MS, 0)]
        observed.append([*first, *known.lines(look, Terms(), None)], look.at_ms, begin=begin)


class Counting(LocalFolder):
    """A folder that notes the sizes of the files that are opened."""

    best_bytes = PART_BYTES
    opened: ClassVar[list[int]] = []

    def open(self, name: str) -> BinaryIO:
        file = super().open(name)
        self.opened.append(os.fstat(file.fileno()).st_size)
        return file

    def read(self) -> str:
        """Return what was opened since the last call, in words."""
        text = f"{len(self.opened)} objects, {sum(self.opened) / 1e6:.1f} MB"
        self.opened.clear()
        return text


def asked(folder: Counting, words: Sequence[str], moment: int) -> None:
    """Ask about a moment, and print what that takes."""
    argv = [sys.executable, "-m", "kgroup", *words, "--at", str(moment), "--files", str(folder), "-o", "json"]
    before = os.times()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    at(folder, moment, with_lag=words[0] == "lag")
    print(f"{' '.join(words):16} {cpu_s:.2f} s of processor time, {folder.read()}", flush=True)


def main(arguments: list[str]) -> None:
    """Store a day, and ask about moments of it."""
    given = dict(each.split("=", 1) for each in arguments)
    usual = {"groups": 500, "partitions": 4, "looks": 8640}
    groups, partitions, looks = (int(given.get(name, number)) for name, number in usual.items())
    with tempfile.TemporaryDirectory() as path:
        folder = Counting(Path(path))
        store(folder, looks_of(groups, partitions, looks))
        sizes = [file.bytes for file in folder.files()]
        print(f"stored: {len(sizes)} objects, {sum(sizes) / 1e6:.1f} MB")
        for share in (0.0, 0.5, 1.0):
            print(f"at {share:.0%} of the day:")
            for words in (("lag", "group-007"), ("lag", "*"), ("doctor", "group-007")):
                asked(folder, words, BEGAN_MS + int(share * (looks - 1)) * STEP_MS + STEP_MS // 2)
        gaps_in(folder)
        today_in(folder, None)
        print(f"of observations blame reads {folder.read()}")
