"""The log our coordinator would have left behind, and whether what is read back is what was running."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kgroup.coordinator.classic.group import NEVER, ClassicGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Record
from kgroup.protocol.group_records import encode_key
from tests.scenarios.hard_state import hard_state

from .differences import Difference, leaves

Entry: TypeAlias = tuple[int, int, Record | bool]
"""Offset, producer id (-1: none), and a record or the end of the producer's transaction."""


@dataclass
class Log:
    """What was appended, and where each batch ends."""

    entries: list[Entry] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])

    @property
    def next_offset(self) -> int:
        return len(self.entries)

    def append(self, records: list[Record], producer: int) -> None:
        for record in records:
            self.entries.append((len(self.entries), producer, record))
        if records:
            self.ends.append(len(self.entries))

    def end(self, producer: int, committed: bool) -> None:
        self.entries.append((len(self.entries), producer, committed))
        self.ends.append(len(self.entries))

    def replay(self, coordinator: Coordinator, entries: list[Entry] | None = None) -> None:
        """Have the coordinator read the log, or these entries of it."""
        for offset, producer, what in self.entries if entries is None else entries:
            if isinstance(what, Record):
                coordinator.replay(what, offset, producer)
            else:
                coordinator.end_transaction(producer, committed=what)

    def compacted(self, upto: int, *, tombstones: bool) -> list[Entry]:
        """The log with its first entries compacted, as far as a cleaner may: not into open transactions."""
        upto = min([upto, *(start for start, _, end in self.transactions() if end is None)])
        aborted = {
            offset
            for start, producer, end in self.transactions()
            if end is not None and self.entries[end][2] is False
            for offset in range(start, end)
            if self.entries[offset][1] == producer
        }
        last: dict[bytes, int] = {}
        for offset, _, what in self.entries[:upto]:
            if isinstance(what, Record) and offset not in aborted:
                last[encode_key(what.key)] = offset
        kept = [
            (offset, producer, what)
            for offset, producer, what in self.entries[:upto]
            if not isinstance(what, Record)
            or (offset not in aborted and last[encode_key(what.key)] == offset)
            and (tombstones or what.value is not None)
        ]
        return kept + self.entries[upto:]

    def transactions(self) -> list[tuple[int, int, int | None]]:
        """First offset, producer and the offset of the end (None: still open) of every transaction."""
        began: dict[int, int] = {}
        ended: list[tuple[int, int, int | None]] = []
        for offset, producer, what in self.entries:
            if producer < 0:
                continue
            if isinstance(what, Record):
                began.setdefault(producer, offset)
            elif producer in began:
                ended.append((began.pop(producer), producer, offset))
        return ended + [(start, producer, None) for producer, start in began.items()]


def reload_differences(running: Coordinator, log: Log, seed: int) -> Iterator[Difference]:
    """How a coordinator loaded from the log, whole or compacted, differs from the one that wrote it."""
    chosen = random.Random(seed)
    everything = len(log.entries)
    variants: list[tuple[str, list[Entry]]] = [("whole", log.entries)]
    for upto in dict.fromkeys((everything, chosen.choice(log.ends), chosen.choice(log.ends))):
        for tombstones in (True, False):
            how = f"compacted to {upto}{'' if tombstones else ' without tombstones'}"
            variants.append((how, log.compacted(upto, tombstones=tombstones)))
    before = hard_state(running)
    for how, entries in variants:
        fresh = Coordinator(running.state.config, "again", running.state.image)
        try:
            log.replay(fresh, entries)
        except Exception as refused:
            yield Difference("reload", how, type(refused).__name__, "loads", str(refused))
            continue
        after = hard_state(fresh)
        for group_id, group in before["groups"].items():
            twin = after["groups"].get(group_id)
            if twin is not None and "shown" in twin and group.get("shown") is None:
                twin["shown"] = None
        groups = {g: v for g, v in before["groups"].items() if not _is_gone(running, g, after)}
        for where, one, other in leaves({**before, "groups": groups}, after):
            yield Difference("reload", how, where, f"(running) {one!r}", other)


def _is_gone(running: Coordinator, group_id: str, after: dict[str, Any]) -> bool:
    """A group that only held offsets of which nothing is left: a cleaner may remove all that told of it."""
    group = running.state.groups[group_id]
    never_written = isinstance(group, ClassicGroup) and group.committed == NEVER
    nothing_left = not running.state.offsets.of_group(group_id)
    return never_written and nothing_left and group_id not in after["groups"]
