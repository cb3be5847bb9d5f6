"""Consume-transform-produce with Kafka's own client: offsets commit with the output, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sampled import FULL

from .conftest import KINDS, SETTINGS, Case
from .driver import Client, Driver, DriverError, Member, fatal, settle
from .waiting import eventually

pytestmark = pytest.mark.interop


class Pipeline:
    """A member that reads `source`, and transactional producers that write what it read to `target`."""

    def __init__(self, case: Case, client: Client, protocol: str = "classic", instance: str | None = None):
        self.case, self.client = case, client
        self.source, self.target = case.topic(1, "in"), case.topic(1, "out")
        self.options: dict[str, Any] = {
            "protocol": protocol,
            "instance": instance,
            "session_ms": 30_000,
            "config": {"isolation.level": "read_committed"},  # a member that rejoins waits for open offsets
        }
        self.member = self.join()
        self.last = ""

    def join(self) -> Member:
        return self.case.join(self.client, self.source, **self.options)

    def open(self, name: str, transactional_id: str | None = None) -> None:
        """Start a producer; a later one with the same transactional id fences the earlier."""
        self.tx("open", name, transactional_id=transactional_id or f"{self.case.group}-tx")

    def tx(self, op: str, name: str, **arguments: object) -> Any:
        at = self.case.server.bootstrap
        return self.case.admin.call(f"tx.{op}", name=f"{self.case.group}-{name}", bootstrap=at, **arguments)

    def feed(self, *values: str) -> None:
        """Write to the source and wait until the member has read it."""
        self.last = values[-1]
        self.case.produce(self.source, list(values))
        eventually(
            lambda: {row[3] for row in self.member.records()}.issuperset(values), what="the source is read"
        )

    def copy(self, name: str) -> int:
        """Begin a transaction with all that was fed since the last; it stays open.

        What a rebalance took from the member before that is read again first, as the client's position is.
        """
        return int(self.tx("copy", name, member=self.member.name, to=self.target, up_to=self.last))

    def end(self, name: str, commit: bool) -> None:
        self.tx("end", name, commit=commit)

    def offsets(self) -> object:
        return self.case.call("offsets", group=self.case.group)

    def committed_output(self, count: int, last: str | None = None) -> list[str]:
        return committed_output(self.case, self.client, self.target, count, last)


def committed_output(
    case: Case, client: Client, topic: str, count: int, last: str | None = None
) -> list[str]:
    """What a read_committed consumer sees once it has seen `count` records, and the value `last`."""
    config = {"isolation.level": "read_committed", "group.id": f"{case.group}-check"}
    reader = case.join(client, topic, config=config)

    def all_there() -> bool:
        values = [row[3] for row in reader.records()]
        return len(values) >= count and (last is None or last in values)

    eventually(all_there, what="committed output")
    rows = reader.records()
    case.close(reader)
    return [row[3] for row in rows]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_committed_and_aborted(case: Case, java_client: Client, protocol: str) -> None:
    """Offsets of an open or aborted transaction are not there; those of a committed one are."""
    pipeline = Pipeline(case, java_client, protocol)
    pipeline.open("p")
    pipeline.feed("a", "b")
    assert pipeline.copy("p") == 2
    assert pipeline.offsets() == []
    pipeline.end("p", commit=True)
    eventually(lambda: pipeline.offsets() == [[pipeline.source, 0, 2]], what="offsets of the transaction")
    pipeline.feed("c")
    assert pipeline.copy("p") == 1
    pipeline.end("p", commit=False)
    pipeline.feed("d")
    assert pipeline.copy("p") == 1
    pipeline.end("p", commit=True)
    eventually(lambda: pipeline.offsets() == [[pipeline.source, 0, 4]], what="offsets of the transaction")
    assert pipeline.committed_output(3) == ["A", "B", "D"]


def test_aborted_offsets_are_read_again(case: Case, java_client: Client) -> None:
    pipeline = Pipeline(case, java_client)
    pipeline.open("p")
    pipeline.feed("a")
    pipeline.copy("p")
    pipeline.end("p", commit=True)
    eventually(lambda: pipeline.offsets() == [[pipeline.source, 0, 1]])
    pipeline.feed("b")
    pipeline.copy("p")
    pipeline.end("p", commit=False)
    case.close(pipeline.member)
    pipeline.member = pipeline.join()
    assert [row[3] for row in eventually(pipeline.member.records)] == ["b"]


def test_producer_zombie_is_fenced(case: Case, java_client: Client) -> None:
    """A second producer with the transactional id aborts the first one's open transaction."""
    pipeline = Pipeline(case, java_client)
    pipeline.open("old")
    pipeline.feed("a")
    pipeline.copy("old")
    pipeline.open("new")
    with pytest.raises(DriverError) as refused:
        pipeline.end("old", commit=True)
    assert refused.value.code in {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
    assert pipeline.offsets() == []
    pipeline.feed("b")
    pipeline.copy("new")
    pipeline.end("new", commit=True)
    eventually(lambda: pipeline.offsets() == [[pipeline.source, 0, 2]])


def test_group_zombie_is_fenced(case: Case, java_client: Client) -> None:
    """KIP-447: offsets of a member that lost its instance id are refused, its transaction can only abort."""
    pipeline = Pipeline(case, java_client, instance="one")
    pipeline.open("old")
    pipeline.feed("a")
    zombie = pipeline.member
    pipeline.member = pipeline.join()
    settle([pipeline.member], case.partitions(pipeline.source, 1))
    assert fatal(zombie) == "FENCED_INSTANCE_ID"
    with pytest.raises(DriverError) as refused:
        pipeline.tx("copy", "old", member=zombie.name, to=pipeline.target, up_to="a")
    assert refused.value.code == "FENCED_INSTANCE_ID"
    pipeline.end("old", commit=False)
    assert pipeline.offsets() == []


def test_session_of_franz_go(case: Case, java_client: Client, clients: Callable[[str], Client]) -> None:
    """Its group transact session: an aborted round is read again, a later session goes on behind the last."""
    source, target = case.topic(1, "in"), case.topic(1, "out")
    go, at = clients("franz-go").driver, case.server.bootstrap

    def open_session(name: str) -> None:
        go.call(
            "session.open",
            name=f"{case.group}-{name}",
            bootstrap=at,
            group=case.group,
            topics=[source],
            transactional_id=f"{case.group}-tx",
        )

    def copy(name: str, count: int, *, commit: bool) -> Any:
        return go.call("session.copy", name=f"{case.group}-{name}", to=target, count=count, commit=commit)

    open_session("one")
    case.produce(source, ["a", "b"])
    assert copy("one", 2, commit=True) == [["a", "b"], True]
    case.produce(source, ["c"])
    assert copy("one", 1, commit=False) == [["c"], False]
    assert copy("one", 1, commit=True) == [["c"], True]
    go.call("session.close", name=f"{case.group}-one")
    open_session("two")
    case.produce(source, ["d"])
    assert copy("two", 1, commit=True) == [["d"], True]
    go.call("session.close", name=f"{case.group}-two")
    assert case.call("offsets", group=case.group) == [[source, 0, 4]]
    assert committed_output(case, java_client, target, 4) == ["A", "B", "C", "D"]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS if FULL else ["kgroup"])
def test_broker_killed_amid_transactions(
    kind: str, tmp_path: Path, drivers: Callable[[str], Driver], java_client: Client
) -> None:
    """Killed while a transaction is open: the producer goes on, and ends it as it wants.

    A consumer that loses its position to the kill reads again what was aborted, so that may be there once.
    """
    with KINDS[kind](SETTINGS, base=tmp_path) as server:
        case = Case(server, drivers("java"), f"killed-tx-{kind}", [])
        pipeline = Pipeline(case, java_client)
        pipeline.open("p")
        for number, commit in enumerate([True, False, True]):
            pipeline.feed(f"v{number}")
            pipeline.copy("p")
            server.kill9()
            server.start()
            pipeline.end("p", commit=commit)
        eventually(lambda: pipeline.offsets() == [[pipeline.source, 0, 3]], what="offsets of the transaction")
        assert pipeline.committed_output(2, last="V2") in (["V0", "V2"], ["V0", "V1", "V2"])
        case.close(pipeline.member)
