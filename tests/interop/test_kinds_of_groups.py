"""Each verb on each kind of group, on Kafka 4.3.1, Kafka 4.4.0 and ours, as docs/kinds-of-groups.md has it.

Every cell works or is refused with the exit code that the page names (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.sampled import in_full

from . import toolchain
from .conftest import KINDS, require
from .driver import Driver
from .jvm import java
from .kafka import SHARED
from .server import Server
from .streams_incident import STREAMS_BROKER, Application
from .test_share_groups import Scene
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PAGE = Path(__file__).parents[2] / "docs" / "kinds-of-groups.md"
EXECUTED = ("--execute", "--yes")
RECORDS = 30
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def host(request: pytest.FixtureRequest) -> Iterator[Server]:
    require("java", "mvn")
    settings = {**SHARED, **STREAMS_BROKER, "offsets.topic.num.partitions": "4"}
    kind, version = request.param.split()
    made = KINDS[kind](settings)
    made.kafka = version
    with made:
        yield made


@contextmanager
def _reader(server: Server, group: str, protocol: str) -> Iterator[None]:
    """A member has read the group's topic to its end and committed."""
    topic = f"{group}-in"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for _ in range(RECORDS):
        producer.produce(topic, b"x")
    producer.flush(30)
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    member = Consumer({"bootstrap.servers": server.bootstrap, "enable.auto.commit": False, **settings})
    member.subscribe([topic])
    read = 0
    while read < RECORDS:
        read += sum(record.error() is None for record in member.consume(RECORDS, 1))
    member.commit(asynchronous=False)
    try:
        yield
    finally:
        member.close()


def classic(server: Server, group: str, folder: Path) -> AbstractContextManager[None]:
    return _reader(server, group, "classic")


def consumer(server: Server, group: str, folder: Path) -> AbstractContextManager[None]:
    return _reader(server, group, "consumer")


@contextmanager
def share(server: Server, group: str, folder: Path) -> Iterator[None]:
    """A member has finished all records, one of them by a rejection."""
    command = java("kgroup.interop.Driver", classpath=toolchain.driver_classpath())
    driver = Driver(command, folder / "driver.log")
    scene = Scene(server, driver, f"{group}-in", group)
    try:
        scene.prepare()
        scene.open("m")
        acquired = scene.poll("m").keys()
        scene.done("m", [3], "REJECT")
        scene.done("m", sorted(acquired - {3}))
        yield
        driver.call("share.close", name="m")
    finally:
        driver.close()


@contextmanager
def streams(server: Server, group: str, folder: Path) -> Iterator[None]:
    """An application has counted words once."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    made = admin.create_topics([NewTopic(f"{group}-in", 2, 1), NewTopic(f"{group}-out", 1, 1)])
    for topic in made.values():
        topic.result(30)
    app = Application(server, group, folder)
    try:
        app.start("s0")
        app.settle({"s0": 4})
        app.feed()
        yield
    finally:
        for name in list(app.instances):
            app.end(name)


Offsets = dict[tuple[str, int], int | None]
MEMBERS = {kind.__name__: kind for kind in (classic, consumer, share, streams)}


@dataclass
class Play:
    """One group, the page's rows in order; each is given the exit code that the page names."""

    ask: Callable[..., Ran]
    group: str
    kind: str
    before: Offsets = field(default_factory=dict)

    def offsets(self) -> Offsets:
        described = self.ask("describe", self.group)
        assert described.code == 0, described.err
        (found,) = described.data["groups"]
        assert found["type"] == self.kind
        return {(r["topic"], r["partition"]): r["committed_offset"] for r in found["offsets"]}

    def describe(self, code: int) -> None:
        described = self.ask("describe", self.group)
        (found,) = described.data["groups"]
        seen = found["type"], found["state"], len(found["members"])
        assert (described.code, *seen) == (code, self.kind, "Stable", 1), described.err
        assert found["members"][0]["assignment"], found

    def lag(self, code: int) -> None:
        def nothing_waits() -> bool:
            lag = self.ask("lag", self.group)
            assert (lag.code, lag.data["groups"][0]["total_lag"]) == (code, 0), lag.err
            return True

        # Kafka writes what a share group's last acknowledgement did after it has answered it.
        eventually(nothing_waits, what="all is read")

    def reset(self, code: int) -> None:
        self.before = self.offsets()
        assert self.before
        reset = self.ask(
            "reset-offsets", self.group, "--topic", f"{self.group}-in", "--to-earliest", *EXECUTED
        )
        assert reset.code == code, reset.err
        if code:
            assert f"{self.group}" in reset.err and "members" in reset.err, reset.err
        moved = {place: 0 for place in self.before if place[0] == f"{self.group}-in" and not code}
        assert self.offsets() == self.before | moved

    def undo(self, code: int) -> None:
        undone = self.ask("reset-offsets", "--undo", "LAST", *EXECUTED)
        assert (undone.code, self.offsets()) == (code, self.before), undone.err

    def replay(self, code: int) -> None:
        told = self.ask("replay-log", self.group)
        kinds = [event["event"] for event in told.data["events"]]
        assert told.code == code, told.err
        assert {"group-created", "member-joined", "member-left-or-expired", "group-emptied"} <= {*kinds}
        assert ("start-offset-set" if self.kind == "share" else "rewound") in kinds
        assert ("records-archived" in kinds) == (self.kind == "share")

    def verify(self, code: int) -> None:
        verified = self.ask("replay-log", "--verify", self.group)
        (verdict,) = verified.data["groups"]
        assert (verified.code, verdict["verdict"], verdict["differences"]) == (code, "same", []), verdict

    def delete(self, code: int) -> None:
        deleted = self.ask("delete", self.group, *EXECUTED)
        assert deleted.code == code, deleted.err
        if code:
            assert f"{self.group}" in deleted.err and "member" in deleted.err, deleted.err
            assert self.offsets()
            return
        assert self.ask("describe", self.group).code == 3
        assert self.ask("replay-log", self.group).data["events"][-1]["event"] == "group-deleted"


WITH_MEMBERS = {
    "`describe`": Play.describe,
    "`lag`": Play.lag,
    "`reset-offsets` while members are there": Play.reset,
    "`delete` while members are there": Play.delete,
}
EMPTY = {
    "`reset-offsets`": Play.reset,
    "`reset-offsets --undo`": Play.undo,
    "`replay-log`": Play.replay,
    "`replay-log --verify`": Play.verify,
    "`delete`": Play.delete,
}


def table() -> dict[str, dict[str, int]]:
    """The page's table: by row and kind, the exit code; 0 where it works."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    (_, *kinds), *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert kinds == list(MEMBERS)
    codes = {
        row: [int(found[1]) if (found := re.search(r"refused \((\d+)\)", cell)) else 0 for cell in cells]
        for row, *cells in rows
    }
    return {row: dict(zip(kinds, found, strict=True)) for row, found in codes.items()}


ON_KAFKA = in_full("of a Kafka one kind is played")
PLAYS = [
    pytest.param(host, kind, marks=() if host == "kgroup 4.4.0" or kind == sampled else ON_KAFKA)
    for host, sampled in (("kafka 4.3.1", None), ("kafka 4.4.0", "share"), ("kgroup 4.4.0", None))
    for kind in MEMBERS
]


@pytest.mark.parametrize(("host", "kind"), PLAYS, indirect=["host"], scope="module")
def test_every_verb(
    kind: str,
    host: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    move_in(monkeypatch, tmp_path)
    group = f"{kind}-{next(_numbers)}"
    told = table()
    assert [*told] == [*WITH_MEMBERS, *EMPTY]
    play = Play(lambda *argv: ran(capsys, *argv, "-o", "json", "-b", host.bootstrap), group, kind)

    def empty() -> bool:
        (found,) = play.ask("describe", group).data["groups"]
        assert found["state"] == "Empty"
        return True

    with MEMBERS[kind](host, group, tmp_path):
        for row, check in WITH_MEMBERS.items():
            check(play, told[row][kind])
    eventually(empty, what="the group is empty")
    for row, check in EMPTY.items():
        check(play, told[row][kind])
