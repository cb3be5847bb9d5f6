"""Real consumers in a group that expects its members (SM-80 to SM-85): they know nothing of it, and need not.

On the embedded broker alone: no Kafka has these settings, which the last test asks one about.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.own_home import move_in
from tests.ran import ran
from tests.sampled import FULL

from .conftest import CLIENTS, Case, require
from .driver import Client, Driver, Member, State, settle
from .kafka import RealKafka
from .kgroup_server import KgroupServer
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
SETTINGS = {"group.consumer.session.timeout.ms": "30000"}
PARTITIONS = 12
CLASSIC, COOPERATIVE, CONSUMER = "range", "cooperative-sticky", "consumer"
NEEDS = {CLASSIC: None, COOPERATIVE: "cooperative", CONSUMER: "consumer"}
KINDS = [
    pytest.param(client, kind, id=f"{client}-{kind}")
    for client, features in CLIENTS.items()
    for kind, feature in NEEDS.items()
    # aiokafka takes a static member's id back when it is fenced, and has no current generation to tell of.
    if client != "aiokafka" and (feature is None or feature in features)
]
SAMPLE = KINDS if FULL else KINDS[::4]
LOSSES = [
    pytest.param(*kind.values, gone, id=f"{kind.id}-{gone}")
    for number, kind in enumerate(KINDS)
    for turn, gone in enumerate(("leaves", "expires"))
    # of every second kind, each in one of the two ways
    if FULL or (number % 2 == 1 and (number // 2 + turn) % 2 == 0)
]
STAGGER_S = 1.0
REST = 4
SESSION = "consumer.session.timeout.ms"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KgroupServer]:
    with KgroupServer(SETTINGS, base=tmp_path_factory.mktemp("registered")) as running:
        yield running


@pytest.fixture
def expecting(
    embedded: KgroupServer,
    drivers: Callable[[str], Driver],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Expecting]:
    require("java", "javac", "mvn")
    move_in(monkeypatch, tmp_path)
    made = Expecting(Case(embedded, drivers("java"), f"x{uuid.uuid4().hex[:8]}", []), capsys)
    yield made
    for member in made.case.members:
        member.driver.begin("close", name=member.name, leave=None).exception(30)


class Expecting:
    """A group, its topic, and what is told of it by `kgroup`."""

    def __init__(self, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
        self.case, self._capsys = case, capsys
        self.topic = case.topic(PARTITIONS)
        self.everything = case.partitions(self.topic, PARTITIONS)

    def kgroup(self, *argv: str) -> Any:
        """The data of a command that ends well."""
        done = ran(self._capsys, *argv, "-b", self.case.server.bootstrap, "-o", "json")
        assert done.code == 0, done.err
        return done.data

    def told(self, *options: str, command: str = "register") -> Any:
        """Register or unregister, and wait for nothing: it acts as it is answered."""
        return self.kgroup("member", command, self.case.group, *options, "--execute", "--yes")

    def join(self, client: Client, kind: str, instance: str | None, session_ms: int = 30_000) -> Member:
        if kind == CONSUMER:
            return self.case.join(client, self.topic, instance=instance, protocol="consumer")
        chosen = {"assignor": kind, "session_ms": session_ms}
        return self.case.join(client, self.topic, instance=instance, **chosen)

    def described(self) -> Any:
        """Whom the group expects, as `describe` tells."""
        return self.kgroup("describe", self.case.group)["groups"][0]["registration"]

    def come(self, count: int) -> None:
        """Wait until so many members are in the group."""

        def there() -> bool:
            return len(self.kgroup("describe", self.case.group)["groups"][0]["members"]) == count

        eventually(there, what=f"{count} members")

    def assigned(self, kind: str) -> int:
        """How often partitions were assigned so far, by the group's records."""
        return len(self.assignments(kind))

    def assignments(self, kind: str) -> list[Any]:
        """The event of each time that partitions were assigned."""
        data = self.kgroup("replay-log", self.case.group)
        wanted = "target-computed" if kind == CONSUMER else "rebalance-completed"
        return [event for event in data["events"] if event["event"] == wanted]

    def rest(self, members: list[Member], kind: str) -> None:
        """Wait until nothing moves: a client that learns of its topic as it joins may well join again."""
        seen: list[Any] = []

        def still() -> bool:
            seen.append((rebalances(members), self.assigned(kind)))
            return len(seen) > REST and seen[-REST - 1 :] == [seen[-1]] * (REST + 1)

        eventually(still, what="the members rest", every=STAGGER_S)


def rebalances(members: list[Member]) -> list[int]:
    return [member.state().rebalances for member in members]


@pytest.mark.parametrize(("name", "kind"), SAMPLE)
def test_four_registered_members_that_come_one_by_one_are_one_rebalance(
    expecting: Expecting, clients: Callable[[str], Client], name: str, kind: str
) -> None:
    """SM-80: 3 live, 4 registered on top, which join at different times."""
    client, ids = clients(name), [f"m-{n}" for n in range(7)]
    expecting.told("--instance-id", ",".join(ids[:3]), "--wait", "60s")
    live = [expecting.join(client, kind, instance) for instance in ids[:3]]
    settle(live, expecting.everything)
    expecting.rest(live, kind)
    expecting.told("--instance-id", ",".join(ids))
    seen, assigned = rebalances(live), expecting.assigned(kind)
    new = []
    for number, instance in enumerate(ids[3:], 1):
        new.append(expecting.join(client, kind, instance))
        if number < 4:
            eventually(
                lambda n=number: len(expecting.described()["held"] or ()) == n, what="the join is held"
            )
            time.sleep(STAGGER_S)
            told = expecting.described()
            assert (told["held"], told["missing"]) == (ids[3 : 3 + number], ids[3 + number :])
            assert (rebalances(live), expecting.assigned(kind)) == (seen, assigned)
    settle([*live, *new], expecting.everything)
    first, *more = expecting.assignments(kind)[assigned:]
    if kind != COOPERATIVE:
        assert more == []
    else:
        # All come in the first. A live member that gives something up then joins again, which is a generation
        # more; it is one for two of them where the second has its assignment before the first joins.
        assert "7 members" in first["detail"]
        assert 1 <= len(more) <= len(live)

    def nobody_waits() -> bool:
        told = expecting.described()
        return (told["held"], told["missing"]) == ([], [])

    # Who is held is not known while a cooperative group joins once more; of any other it is known at once.
    eventually(nobody_waits, 30 if kind == COOPERATIVE else 0, "nobody is held or missing")


@pytest.mark.parametrize(("name", "kind", "gone"), LOSSES)
def test_a_standby_takes_a_lost_member_over_and_nobody_else_notices(
    expecting: Expecting, clients: Callable[[str], Client], name: str, kind: str, gone: str
) -> None:
    """SM-83 to SM-85: 3 active, 2 stand by, one is lost; who comes back stands by."""
    client, static = clients(name), gone == "expires"
    expecting.told("--target-size", "3")
    expecting.kgroup("config", "set", expecting.case.group, f"{SESSION}=6000", "--execute", "--yes")

    def join(number: int) -> Member:
        return expecting.join(client, kind, f"m-{number}" if static else None, session_ms=6_000)

    active = []
    for number in range(3):
        active.append(join(number))
        expecting.come(number + 1)
    settle(active, expecting.everything)
    standbys = []
    for number in (3, 4):
        standbys.append(join(number))
        eventually(lambda n=number: len(expecting.described()["standby"] or ()) == n - 2, what="it stands by")
    # The first to come leads. A leader's heir must learn that it leads and has nothing to compute (KIP-814):
    # librdkafka and kafka-python cannot be told, and franz-go computes all the same, and has the group
    # rebalance if its own plan differs from what it inherits.
    lost = active[0 if name == "java" else 1]
    others = [member for member in active if member is not lost]
    inherited = lost.state().assignment
    seen, before = rebalances(others), states(others)
    expecting.case.close(lost)
    heir = eventually(lambda: owner(standbys, inherited), what="a standby takes over")
    rest = [member for member in standbys if member is not heir]
    assert heir is standbys[0]
    assert [state.assignment for state in states(rest)] == [frozenset()]
    back = join(active.index(lost))
    expected = 2
    eventually(lambda: len(expecting.described()["standby"] or ()) == expected, what="it is back")
    time.sleep(STAGGER_S)
    assert rebalances(others) == seen
    assert [(s.assignment, s.fatal) for s in states(others)] == [(s.assignment, None) for s in before]
    if kind != CONSUMER:
        assert [s.generation for s in states(others)] == [s.generation for s in before]
    assert heir.state().assignment == inherited
    assert back.state().assignment == frozenset()
    settle([heir, *others], expecting.everything)


def states(members: list[Member]) -> list[State]:
    return [member.state() for member in members]


def owner(members: list[Member], partitions: frozenset[Any]) -> Member | None:
    return next((member for member in members if member.state().assignment == partitions), None)


@pytest.mark.parametrize("kind", [CLASSIC, CONSUMER])
def test_members_that_are_unregistered_go_in_one_rebalance(
    expecting: Expecting, java_client: Client, kind: str
) -> None:
    """SM-81: the list shrinks by two."""
    ids = [f"m-{n}" for n in range(4)]
    expecting.told("--instance-id", ",".join(ids), "--wait", "60s")
    members = [expecting.join(java_client, kind, instance) for instance in ids]
    settle(members, expecting.everything)
    assigned = expecting.assigned(kind)
    going = members[2:]
    for member in going:
        expecting.case.close(member)
    data = expecting.told("--instance-id", ",".join(ids[2:]), command="unregister")
    assert all(row["member_id"] for row in data["instances"][2:])
    settle(members[:2], expecting.everything)
    assert expecting.assigned(kind) - assigned == 1


def test_a_kafka_knows_no_registered_ids(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    require("java", "mvn")
    move_in(monkeypatch, tmp_path)
    with RealKafka(base=tmp_path_factory.mktemp("unknowing")) as kafka:
        where = ("-b", kafka.bootstrap)
        before = ran(capsys, "config", "get", "g", *where, "-o", "json").data
        for argv in (
            ("register", "g", "--instance-id", "a", "--wait", "1s", "--target-size", "2"),
            ("unregister", "g", "--instance-id", "a"),
            ("unregister", "g", "--all"),
        ):
            for extra in ((), ("--execute", "--yes")):
                done = ran(capsys, "member", *argv, *extra, *where)
                assert (done.code, done.out) == (1, "")
                assert done.err.startswith(
                    "error: this broker does not know registered instance ids, only an"
                )
        assert ran(capsys, "config", "get", "g", *where, "-o", "json").data == before
        assert ran(capsys, "journal", "list", "-o", "json").data["entries"] == []
