"""Upgrade by rolling, then downgrade by rolling: the plan's verdict against what each broker then does.

The full run has every cell; KGROUP_UPGRADE_TABLE=FILE appends a JSON line for each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.plan import plan_migration
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from tests.sampled import FULL

from .conftest import Case
from .driver import Client, Member, fatal, settle
from .upgrade_audit import Audit, Owners, double_owners_in_records
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
PARTITIONS = 6
SIZE = 3
SESSION_MS = 30_000


@dataclass(frozen=True)
class Cell:
    """One group of the matrix."""

    client: str
    assignor: str
    static: bool

    def __str__(self) -> str:
        return f"{self.client}-{self.assignor}-{'static' if self.static else 'dynamic'}"


ASSIGNORS = {
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "librdkafka": ("range", "cooperative-sticky"),
}
EVERY = [Cell(c, a, s) for c, assignors in ASSIGNORS.items() for a in assignors for s in (False, True)]
QUICK = [
    Cell("java", "range", True),
    Cell("java", "cooperative-sticky", False),
    Cell("librdkafka", "range", False),
    Cell("librdkafka", "cooperative-sticky", True),
]
CELLS = EVERY if FULL else QUICK


@dataclass
class Roll:
    """The members of a cell, and how to replace them one by one."""

    case: Case
    client: Client
    cell: Cell
    topic: str
    members: list[Member] = field(default_factory=list)

    @property
    def everything(self) -> set[tuple[str, int]]:
        return self.case.partitions(self.topic, PARTITIONS)

    def start(self, number: int, protocol: str) -> Member:
        classic = {"assignor": self.cell.assignor, "session_ms": SESSION_MS} if protocol == "classic" else {}
        instance = f"i{number}" if self.cell.static else None
        return self.case.join(self.client, self.topic, instance=instance, protocol=protocol, **classic)

    def fill(self, protocol: str) -> None:
        """Start all members, one after the other."""
        for number in range(SIZE):
            self.members.append(self.start(number, protocol))
            settle(self.members, self.everything)

    def type(self) -> str:
        return str(self.case.describe()["type"])


@pytest.fixture
def admin(case: Case) -> Iterator[ClusterView]:
    """kgroup's own, on the same broker."""
    with SocketTransport(ConnectionSettings(parse_bootstrap(case.server.bootstrap))) as transport:
        yield ClusterView(transport)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_verdict_is_what_the_broker_does(
    cell: Cell, case: Case, clients: Callable[[str], Client], admin: ClusterView
) -> None:
    """No commit is lost and no partition has two owners on the way."""
    roll = Roll(case, clients(cell.client), cell, case.topic(PARTITIONS))
    audit, owners = Audit(case, roll.topic, PARTITIONS), Owners()
    try:
        roll.fill("classic")
        owners.follow(roll.members)
        audit.batch()
        audit.settled(roll.members)
        verdict = plan_migration(admin, case.group, "upgrade").verdict
        did = _roll(roll, audit, owners, "consumer")
        assert (verdict, did) in {("ready", "converted"), ("blocked", "refused")}
        if did == "refused":
            _offline(roll, audit, owners, admin)
        back = plan_migration(admin, case.group, "downgrade").verdict
        did_back = _roll(roll, audit, owners, "classic")
        assert (back, did_back) == ("ready", "converted")
    finally:
        claimed_twice = owners.stop()
    in_records = double_owners_in_records(case.server.segments(), case.group)
    assert (audit.faults, claimed_twice, in_records) == ([], [], [])
    _note(case, cell, verdict, did, back, did_back)


def _roll(roll: Roll, audit: Audit, owners: Owners, protocol: str) -> str:
    """Replace the members one by one: `converted`, or `refused` when the first successor is."""
    for number in range(SIZE):
        audit.take(roll.members)
        leaver = roll.members.pop(number)
        owners.follow(roll.members)
        roll.case.close(leaver)
        audit.batch()
        if not roll.cell.static:
            settle(roll.members, roll.everything)
        successor = roll.start(number, protocol)
        if number == 0 and protocol == "consumer" and _is_refused(roll, successor):
            roll.case.close(successor)
            return "refused"
        roll.members.insert(number, successor)
        settle(roll.members, roll.everything)
        owners.follow(roll.members)
        audit.settled(roll.members)
        if protocol == "consumer":
            assert roll.type() == "Consumer"
    wanted = protocol.title()
    return "converted" if roll.type() == wanted else f"still {roll.type()}"


def _is_refused(roll: Roll, successor: Member) -> bool:
    """Whether the first consumer-protocol member ends with GROUP_ID_NOT_FOUND; it owns something if not."""
    state = eventually(lambda: (s := successor.state()) and (s.fatal or s.assignment) and s)
    if state.fatal is None:
        return False
    assert fatal(successor) == "GROUP_ID_NOT_FOUND"
    assert roll.type() == "Classic"
    return True


def _offline(roll: Roll, audit: Audit, owners: Owners, admin: ClusterView) -> None:
    """The remedy the plan names: stop all, let the group go Empty, start them with the new protocol."""
    owners.follow([])
    audit.take(roll.members)
    for member in roll.members:
        roll.case.close(member)
    roll.members.clear()
    if roll.cell.static:
        roll.case.call("remove", group=roll.case.group)
    eventually(lambda: roll.case.describe()["state"] == "Empty", what="the group is empty")
    assert plan_migration(admin, roll.case.group, "upgrade").verdict == "ready"
    roll.fill("consumer")
    owners.follow(roll.members)
    audit.settled(roll.members)
    assert roll.type() == "Consumer"


def _note(case: Case, cell: Cell, *outcome: str) -> None:
    """Keep the cell for the table in the documentation."""
    if path := os.environ.get("KGROUP_UPGRADE_TABLE"):
        line = {"server": case.server.kind, "cell": str(cell), "outcome": outcome}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
