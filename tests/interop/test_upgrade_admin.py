"""`upgrade execute`, `watch` and `rehearse` against the broker: offsets, unowned time and records agree."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.admin.migrate.execute import convert_empty
from kgroup.admin.migrate.plan import plan_migration
from kgroup.admin.migrate.rehearsal_shard import copies_of
from kgroup.admin.migrate.rehearse import rehearse
from kgroup.admin.migrate.watch import DONE, Look, watch_migration
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import offsets_partition_of
from kgroup.history.fold.events import Kind
from kgroup.history.raw import raw_rows
from kgroup.history.replay import replay
from kgroup.history.sources.live import LiveLog, LiveTopic

from .conftest import Case
from .driver import Client, Member, settle
from .waiting import eventually

pytestmark = [pytest.mark.interop]
PARTITIONS = 6
SLACK_MS = 50
"""Between a record's timestamp and the moment a describe shows it."""


@pytest.fixture
def admin(case: Case, tmp_path: Path) -> Iterator[ClusterView]:
    with _transport(case) as transport:
        yield ClusterView(transport, journal=Journal(tmp_path / "journal.jsonl"))


def _transport(case: Case) -> SocketTransport:
    return SocketTransport(ConnectionSettings(parse_bootstrap(case.server.bootstrap)))


def _log(case: Case, admin: ClusterView) -> tuple[LiveTopic, LiveLog]:
    topic = LiveTopic(admin.transport)
    return topic, LiveLog(topic, offsets_partition_of(case.group, len(topic.partitions)))


def _fill(case: Case, client: Client, topic: str, static: bool) -> list[Member]:
    members: list[Member] = []
    for n in range(3):
        instance = f"i{n}" if static else None
        members.append(case.join(client, topic, instance=instance, session_ms=30_000))
        settle(members, case.partitions(topic, PARTITIONS))
    return members


def test_offline_conversion_keeps_the_offsets_in_both_directions(
    case: Case, java_client: Client, admin: ClusterView
) -> None:
    topic = case.topic(PARTITIONS)
    member = case.join(java_client, topic)
    settle([member], case.partitions(topic, PARTITIONS))
    member.commit({(topic, n): 10 + n for n in range(PARTITIONS)})
    case.close(member)
    eventually(lambda: case.describe()["state"] == "Empty", what="the group is empty")
    before = sorted(case.call("offsets", group=case.group))
    for direction, kind in (("upgrade", "Consumer"), ("downgrade", "Classic")):
        made = plan_migration(admin, case.group, direction)
        assert made.verdict == "ready"
        done = convert_empty(admin, made)
        assert (done.offsets, done.offsets_changed) == (PARTITIONS, ())
        described = case.describe()
        assert (described["type"], described["state"]) == (kind, "Empty")
        assert sorted(case.call("offsets", group=case.group)) == before


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_unowned_time_of_watch_agrees_with_the_records(
    static: bool, case: Case, java_client: Client, admin: ClusterView
) -> None:
    """Members are rolled under watch; the offsets topic says how long nobody owned what."""
    topic = case.topic(PARTITIONS)
    members = _fill(case, java_client, topic, static)
    everything = case.partitions(topic, PARTITIONS)
    _replace(case, java_client, topic, members, 0, static)
    settle(members, everything)
    eventually(lambda: case.describe()["state"] == "Stable", what="stable after the first successor")
    looks: list[Look] = []
    seen = threading.Event()

    def look() -> None:
        with _transport(case) as transport:
            admin = ClusterView(transport)
            for each in watch_migration(admin, case.group, "upgrade", interval_s=0.03, stuck_after_s=40):
                looks.append(each)
                seen.set()

    watching = threading.Thread(target=look)
    watching.start()
    seen.wait(20)
    for number in (1, 2):
        _replace(case, java_client, topic, members, number, static)
        settle(members, everything)
    watching.join(60)
    last = looks[-1]
    assert (last.status, last.moved, last.members, last.remaining) == (DONE, 3, 3, ())
    names, log = _log(case, admin)
    story = replay([log], topic_names=names.topic_names, names=[case.group])
    during = [e for e in story.events if looks[0].timestamp_ms <= e.timestamp_ms <= last.timestamp_ms]
    # The event at the end of a rebalance sums up what those before it have told.
    told = [gap.ms for e in during if e.kind is not Kind.REBALANCE_COMPLETED for gap in e.unowned]
    bounds, slack = last.unowned_partition_ms, SLACK_MS * (len(told) + 1)
    assert static or told, "a dynamic member is gone before its successor owns anything"
    assert bounds.at_least - slack <= sum(told) <= bounds.at_most + slack


def _replace(
    case: Case, client: Client, topic: str, members: list[Member], number: int, static: bool
) -> None:
    case.close(members.pop(number))
    instance = f"i{number}" if static else None
    members.insert(number, case.join(client, topic, instance=instance, protocol="consumer"))


def test_rehearsal_writes_the_records_the_broker_then_writes(
    case: Case, java_client: Client, admin: ClusterView
) -> None:
    """The batches that convert a group of static members, there and back: same types, same epochs."""
    topic = case.topic(PARTITIONS)
    members = _fill(case, java_client, topic, static=True)
    names, log = _log(case, admin)
    counts = {topic: PARTITIONS}
    settings = {"group.consumer.min.session.timeout.ms": "1000", "group.min.session.timeout.ms": "1000"}
    copy = copies_of(log, [case.group])[case.group]
    rehearsed = rehearse(
        copy, case.group, settings=settings, topic_names=names.topic_names, partition_counts=counts
    )
    assert (rehearsed.upgrade, rehearsed.downgrade) == ("converted", "converted")
    for protocol in ("consumer", "classic"):
        for number in range(len(members)):
            case.close(members.pop(number))
            successor = case.join(
                java_client, topic, instance=f"i{number}", protocol=protocol, session_ms=30_000
            )
            members.insert(number, successor)
            settle(members, case.partitions(topic, PARTITIONS))
    assert case.describe()["type"] == "Classic"
    real = _conversions(list(raw_rows(_log(case, admin)[1], names=[case.group])))
    ours = _conversions([dict(row) for step in rehearsed.steps for row in step.records])
    assert len(real) == 2
    assert ours == real


def _conversions(rows: list[dict]) -> list[list[tuple]]:  # type: ignore[type-arg]
    """The batches with a tombstone of the group itself, as shapes."""
    converting = [row["batch"] for row in rows if row["type"] in (2, 3) and row["value"] is None]
    return [[_shape(row) for row in rows if row["batch"] == batch] for batch in dict.fromkeys(converting)]


def _shape(row: dict) -> tuple:  # type: ignore[type-arg]
    """What is the same in every run of the same migration: ids and times are not."""
    value = row["value"]
    told = (
        None
        if value is None
        else {k: value[k] for k in ("epoch", "assignment_epoch", "member_epoch", "generation") if k in value}
    )
    return row["type_name"], value is None, told
