"""The log as a service records it: what ends a capture is lived through, and what is missing is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.recording.topic_log import TopicLog
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, StorageError, Unreachable
from kgroup.history.sources import topics
from kgroup.history.sources.logs import segment_logs
from kgroup.protocol.batches import Batch, with_base_offset
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.history.test_capture import ID, NOW, Topic, kept_in, one

OTHER = ID[::-1]


class World:
    """A cluster's offsets topic, and the recording of it; `restart` is another process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.topic = Topic({0: [one(0), one(1)], 1: [one(0)]})
        self.topic.topic_names = {ID: OFFSETS_TOPIC}
        self.failing: KgroupError | None = None
        self.fake = FakeCluster()
        monkeypatch.setattr(topics, "LiveTopic", self.opened)
        self.restart()

    def opened(self, transport: object, timeout_s: float, *, name: str = OFFSETS_TOPIC, **_: object) -> Topic:
        if name != OFFSETS_TOPIC:
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
        if self.failing is not None:
            raise self.failing
        return self.topic

    def restart(self) -> None:
        self.log = TopicLog(ClusterView(self.fake, self.fake.retry(), now_ms=lambda: NOW), self.folder)

    def polled(self) -> list[tuple[int, int, int]]:
        """Poll; the gaps that were noticed, as partition, first and last offset."""
        self.log.poll()
        self.log.refresh()
        return [(gap.partition, gap.first, gap.last) for gap in self.log.gaps()]

    def offsets(self, folder: Path | None = None) -> dict[int, list[int]]:
        """What is recorded: the offsets of each partition."""
        found = {}
        for log in segment_logs([folder or self.folder]):
            found[log.partition] = [h.base_offset for _, headers in log.batches() for h in headers]
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path / "recording", monkeypatch)


def test_it_goes_on_exactly_where_it_was(world: World) -> None:
    for number in range(1, 6):
        assert world.polled() == []
        world.topic.logs[1].append(one(number))
        if number % 2:
            world.restart()
    world.polled()
    assert world.offsets() == {0: [0, 1], 1: [0, 1, 2, 3, 4, 5]}


def test_added_partitions_are_recorded(world: World) -> None:
    world.polled()
    world.topic.logs[2], world.topic.first[2] = [one(0)], 0
    assert world.polled() == [] and world.offsets()[2] == [0]


def test_a_topic_that_was_created_again_is_recorded_from_its_start(world: World) -> None:
    """It has the same epochs, and more records than the former one: only its id shows it."""
    world.polled()
    world.topic.logs = {0: [one(n) for n in range(4)], 1: [one(n) for n in range(3)]}
    world.topic.topic_names = {OTHER: OFFSETS_TOPIC}
    world.restart()
    gaps = world.polled()
    assert {gap[:2] for gap in gaps} == {(0, 2), (1, 1)}
    assert world.offsets() == {0: [0, 1, 2, 3], 1: [0, 1, 2]}
    (former,) = world.folder.glob("former-*")
    assert world.offsets(former) == {0: [0, 1], 1: [0]}
    world.restart()
    assert world.polled() == [], "once"


def test_a_topic_that_is_created_again_while_it_runs(world: World) -> None:
    world.polled()
    world.topic.logs, world.topic.topic_names = {0: [one(0)], 1: []}, {OTHER: OFFSETS_TOPIC}
    gaps = world.polled() + world.polled()
    assert sorted(gaps) == [(0, 2, -1), (1, 1, -1)] and world.offsets() == {0: [0]}


def test_a_log_that_lost_records_is_set_aside_alone(world: World) -> None:
    """An unclean election: partition 0 has another record at offset 1."""
    world.polled()
    world.restart()
    world.topic.logs[0] = [one(0), with_base_offset(one(1), 1, 9)]
    world.log.poll()
    (gap,) = world.log.gaps()
    assert (gap.partition, gap.first, gap.last) == (0, 2, -1) and "leader epoch 9" in gap.why
    world.polled()
    assert world.offsets() == {0: [0, 1], 1: [0]}
    assert Batch(world.topic.logs[0][1]).partition_leader_epoch == 9
    assert world.topic.logs[0][1] in kept_in(world.folder)


def test_offsets_that_were_gone_are_a_gap_once(world: World) -> None:
    world.polled()
    world.topic.logs[0], world.topic.first[0] = [one(5)], 5
    assert world.polled() == [(0, 2, 4)] and world.polled() == []
    world.restart()
    assert world.polled() == []


def test_a_full_disk_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.polled()
    world.topic.logs[0] += [one(2), one(3)]
    sync = os.fsync
    left = [1]

    def full(descriptor: int) -> None:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left.pop()
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        for _ in range(3):
            with pytest.raises(StorageError, match="No space left"):
                world.log.poll()
    assert world.polled() == [] and world.offsets() == {0: [0, 1, 2, 3], 1: [0]}


def test_brokers_that_are_down_are_asked_again(world: World) -> None:
    world.failing = Unreachable("no broker answers")
    world.log.poll()
    assert isinstance(world.log.unread, Unreachable)
    world.failing = None
    assert world.polled() == [] and world.log.unread is None and world.offsets()[0] == [0, 1]
    world.topic.failing[0] = Unreachable("broker 1 does not answer")
    world.topic.logs[1].append(one(1))
    world.polled()
    assert world.log.failures == {"partition 0": "broker 1 does not answer"} and world.offsets()[1] == [0, 1]


@pytest.mark.parametrize("hidden", [True, False])
def test_a_topic_that_may_not_be_read_is_said(world: World, hidden: bool) -> None:
    refused = BrokerRefused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the principal lacks Read")
    world.failing = refused if hidden else None
    world.topic.failing = {0: refused, 1: refused}
    world.log.poll()
    assert world.log.unread is refused and world.log.read_ms is None
    world.failing, world.topic.failing = None, {}
    world.log.poll()
    assert (world.log.unread is None) is not hidden, "asked again after a while only"
    world.fake.time.sleep(31)
    world.log.poll()
    assert world.log.unread is None and world.offsets()[0] == [0, 1]


def test_names_of_topics_that_are_gone_by_now_are_kept(world: World) -> None:
    world.topic.topic_names = {ID: OFFSETS_TOPIC, OTHER: "orders"}
    world.polled()
    world.topic.topic_names = {ID: OFFSETS_TOPIC}
    world.restart()
    world.polled()
    assert "orders" in (world.folder / "topics.json").read_text(encoding="utf-8")
