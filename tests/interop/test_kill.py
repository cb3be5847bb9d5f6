"""kill -9 of the broker while several real clients commit: what was acknowledged is there afterwards."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sampled import FULL

from .conftest import KINDS, SETTINGS, Case, require
from .driver import Client, Driver, DriverError, Member, Partition, settle
from .server import Server
from .waiting import eventually

pytestmark = pytest.mark.interop

KILLS = int(os.environ.get("KGROUP_INTEROP_KILLS", "5" if FULL else "3"))
KIND = os.environ.get("KGROUP_INTEROP_KILL_SERVER", "kgroup")
COMMITTERS = ("java", "franz-go", "librdkafka", "kafka-python")
COMMITS_A_ROUND = 5


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A broker that only this test uses, so that it may be killed."""
    require("java", "mvn", "go")
    with KINDS[KIND](SETTINGS, base=tmp_path) as running:
        yield running


@dataclass
class Committer:
    """Commits 1, 2, 3, … for one partition, and keeps what was acknowledged."""

    member: Member
    partition: Partition
    sent: int = 0
    acknowledged: int = 0
    refused: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopped.is_set():
            self.sent += 1
            try:
                self.member.commit({self.partition: self.sent})
            except (DriverError, TimeoutError) as failure:  # not acknowledged: may be there or not
                self.refused.append(str(failure))
                self.stopped.wait(0.05)
            else:
                self.acknowledged = self.sent


@pytest.mark.timeout(1200)
def test_acknowledged_commits_survive_kill_9(
    own_server: Server, drivers: Callable[[str], Driver], clients: Callable[[str], Client]
) -> None:
    case = Case(own_server, drivers("java"), "killed", [])
    topic = case.topic(len(COMMITTERS))
    committers = []
    for number, name in enumerate(COMMITTERS):
        own = Case(own_server, drivers("java"), f"killed-{name}", [])
        member = own.join(clients(name), topic, session_ms=30_000)
        settle([member], case.partitions(topic, len(COMMITTERS)))
        committers.append(Committer(member, (topic, number)))
    threads = [threading.Thread(target=each.run, daemon=True) for each in committers]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            _kill_amid_commits(own_server, committers)
            _check(case, committers, COMMITTERS)
        _progress(committers)
    finally:
        for each in committers:
            each.stopped.set()
        for thread in threads:
            thread.join(60)
        for each in committers:
            each.member.driver.begin("close", name=each.member.name, leave=None).exception(60)


def _progress(committers: list[Committer]) -> None:
    """Wait until every member has had some more commits acknowledged."""
    goals = [each.acknowledged + COMMITS_A_ROUND for each in committers]

    def on() -> bool:
        behind = [each for each, goal in zip(committers, goals, strict=True) if each.acknowledged < goal]
        seen = [(each.member.name, each.sent, each.acknowledged, each.refused[-1:]) for each in behind]
        assert not behind, seen
        return True

    eventually(on, what="all members commit on")


def _kill_amid_commits(server: Server, committers: list[Committer]) -> None:
    _progress(committers)
    server.kill9()
    server.start()


def _check(case: Case, committers: list[Committer], names: tuple[str, ...]) -> None:
    """No acknowledged commit is missing, and nothing is there that was never sent."""
    for each, name in zip(committers, names, strict=True):
        least = each.acknowledged
        rows = case.call("offsets", group=f"killed-{name}")
        assert isinstance(rows, list)
        found = {(topic, partition): offset for topic, partition, offset in rows}
        assert least <= found.get(each.partition, 0) <= each.sent, (name, least, found, each.sent)
