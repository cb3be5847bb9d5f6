"""What consumers of a group processed and committed, and what its records say, checked across a migration."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgroup.history.raw import raw_rows
from kgroup.history.sources.logs import segment_logs

from .conftest import Case
from .driver import DriverError, Member, Partition
from .waiting import eventually

SAMPLE_S = 0.2


@dataclass
class Audit:
    """Feeds a topic and follows the members that read it.

    `batch` makes the same number of records in every partition. `settled` waits until all of them were
    read, has every member commit, and remembers that as the floor nobody may read below again.
    """

    case: Case
    topic: str
    partitions: int
    produced: int = 0
    floor: int = 0
    read: dict[str, list[tuple[str, int, int, str]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _below: dict[str, int] = field(default_factory=dict)

    def batch(self, count: int = 2) -> None:
        """Add records to every partition; values tell their place."""
        for partition in range(self.partitions):
            values = [f"{partition}:{self.produced + n}" for n in range(count)]
            self.case.produce(self.topic, values, partition)
        self.produced += count

    def take(self, members: list[Member]) -> None:
        """Remember what these have read by now; call it before a member is closed."""
        for member in members:
            rows = member.records()
            for _, partition, offset, value in rows[self._below.setdefault(member.name, 0) :]:
                if offset < self.floor:
                    self.faults.append(f"{member.name} read {partition}:{offset} below {self.floor}")
                if value != f"{partition}:{offset}":
                    self.faults.append(f"{member.name} read {value} at {partition}:{offset}")
            self._below[member.name] = len(rows)
            self.read[member.name] = rows

    def settled(self, members: list[Member]) -> None:
        """Everything produced was read by somebody, is committed, and stays committed."""

        def all_read() -> bool:
            self.take(members)
            seen = {(p, offset) for rows in self.read.values() for _, p, offset, _ in rows}
            return len(seen) == self.partitions * self.produced

        eventually(all_read, what=f"all {self.partitions * self.produced} records read")
        wanted = sorted([self.topic, partition, self.produced] for partition in range(self.partitions))

        def all_committed() -> bool:
            # A partition read by its last owner may still be read again by its next: until then it lags.
            refused = {m.name: code for m in members if (code := _commit(m))}
            committed = sorted(self._offsets())
            assert committed == wanted, (committed, refused, [m.state() for m in members])
            return True

        eventually(all_committed, what=f"every partition committed at {self.produced}")
        self.take(members)
        self.floor = self.produced

    def _offsets(self) -> list[list[object]]:
        found = self.case.call("offsets", group=self.case.group)
        assert isinstance(found, list)
        return found


def _commit(member: Member) -> str | None:
    """Commit all positions; the code while a rebalance or a new epoch is in the way."""
    if not member.state().assignment:
        return None
    try:
        member.commit()
    except DriverError as error:
        return error.code
    return None


class Owners:
    """Asks the members again and again who owns what; one claimed by two twice running is a fault."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.faults: list[str] = []
        self._claims: set[tuple[Partition, str, str]] = set()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def follow(self, members: list[Member]) -> None:
        """From now on, these."""
        with self._lock:
            self.members = list(members)
            self._claims.clear()

    def stop(self) -> list[str]:
        """The faults found."""
        self._stop.set()
        self._thread.join(10)
        return self.faults

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        owners: dict[Partition, list[str]] = defaultdict(list)
        for member in self.members:
            state = member.state()
            for partition in state.assignment if state.fatal is None else ():
                owners[partition].append(member.name)
        claims = {(p, a, b) for p, names in owners.items() for a in names for b in names if a < b}
        # One sample asks one after the other, so a partition may change hands in between; two do not.
        self.faults += [f"{p} is owned by {a} and {b}" for p, a, b in claims & self._claims]
        self._claims = claims


def double_owners_in_records(segments: list[Path], group: str) -> list[str]:
    """Every moment in the group's records at which two members hold the same partition."""
    faults: list[str] = []
    for log in segment_logs(segments):
        held: dict[str, set[tuple[str, int]]] = {}
        batch = -1
        for row in raw_rows(log, names=[group]):
            if row["batch"] != batch:
                faults += _overlaps(held, batch)
                batch = row["batch"]
            _apply(held, row)
        faults += _overlaps(held, batch)
    return faults


def _apply(held: dict[str, set[tuple[str, int]]], row: dict[str, Any]) -> None:
    if row["type"] == 2:
        for member in [name for name in held if name.startswith("classic:")]:
            del held[member]
        for member in (row["value"] or {}).get("members", ()):
            places = member["assignment"].get("partitions", ())
            pairs = (place.rpartition("-") for place in places)
            held[f"classic:{member['member_id']}"] = {(topic, int(number)) for topic, _, number in pairs}
    elif row["type"] == 8:
        member_id, value = row["key"]["member_id"], row["value"]
        held.pop(member_id, None)
        if value:
            lists = (*value["assigned_partitions"], *value["partitions_pending_revocation"])
            held[member_id] = {
                (entry["topic_id"], number) for entry in lists for number in entry["partitions"]
            }


def _overlaps(held: dict[str, set[tuple[str, int]]], batch: int) -> list[str]:
    names = sorted(held)
    return [
        f"batch {batch}: {a} and {b} hold {sorted(both)}"
        for n, a in enumerate(names)
        for b in names[n + 1 :]
        if (both := held[a] & held[b])
    ]
