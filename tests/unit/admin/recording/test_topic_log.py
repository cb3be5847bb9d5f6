"""The log as a service records it: what ends a capture is lived through, and what is missing is named."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.recording.gaps import gaps_in
from kgroup.admin.recording.topic_log import TopicLog
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, StorageError, Unreachable
from kgroup.history.sources import topics
from kgroup.history.sources.folders import Folder, LocalFolder, read_small
from kgroup.history.sources.logs import segment_logs
from kgroup.protocol.batches import Batch, with_base_offset
from kgroup.storage.location import Location
from tests.memory_store import Killed, MemoryStore, opened
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.history.test_capture import ID, NOW, Topic, one

OTHER = ID[::-1]
LOG = OFFSETS_TOPIC
REPLACED = {f"{LOG}-0: offsets from 2 on", f"{LOG}-1: offsets from 1 on"}
WAITING_REPLACED = {f"{LOG}-0: offsets from 3 on", f"{LOG}-1: offsets from 1 on"}


class World:
    """A cluster's offsets topic, and the recording of it; `restart` is another process."""

    def __init__(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
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
        view = ClusterView(self.fake, self.fake.retry(), now_ms=lambda: NOW)
        self.noted: list[str] = []
        self.log = TopicLog(view, self.folder, 0.0, self.noted.append)

    def polled(self) -> set[str]:
        """Poll; the gaps that were noticed, each up to its reason."""
        before = len(self.noted)
        self.log.poll()
        self.log.refresh()
        return {text.partition(" are not")[0] for text in self.noted[before:]}

    def offsets(self, below: str = "") -> dict[int, list[int]]:
        """What is recorded: the offsets of each partition."""
        found = {}
        at = Location.parse(str(self.folder))
        for log in segment_logs([at / below if below else at]):
            found[log.partition] = [h.base_offset for _, headers in log.batches() for h in headers]
        return found

    @property
    def former(self) -> str:
        """The folder of logs that were set aside."""
        stored = {file.name.partition("/")[0] for file in self.folder.files()}
        (found,) = (name for name in stored if name.startswith("former-"))
        return found


@pytest.fixture(params=["folder", "url"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    if request.param == "folder":
        return World(LocalFolder(tmp_path / "recording"), monkeypatch)
    return World(opened(monkeypatch, MemoryStore()), monkeypatch)


def test_it_goes_on_exactly_where_it_was(world: World) -> None:
    for number in range(1, 6):
        assert world.polled() == set()
        world.topic.logs[1].append(one(number))
        if number % 2:
            world.restart()
    world.polled()
    assert world.offsets() == {0: [0, 1], 1: [0, 1, 2, 3, 4, 5]}


def test_added_partitions_are_recorded(world: World) -> None:
    world.polled()
    world.topic.logs[2], world.topic.first[2] = [one(0)], 0
    assert world.polled() == set() and world.offsets()[2] == [0]


def test_a_topic_that_was_created_again_is_recorded_from_its_start(world: World) -> None:
    """It has the same epochs, and more records than the former one: only its id shows it."""
    world.polled()
    world.topic.logs = {0: [one(n) for n in range(4)], 1: [one(n) for n in range(3)]}
    world.topic.topic_names = {OTHER: OFFSETS_TOPIC}
    world.restart()
    assert world.polled() == REPLACED
    assert world.offsets() == {0: [0, 1, 2, 3], 1: [0, 1, 2]}
    assert world.offsets(world.former) == {0: [0, 1], 1: [0]}
    world.restart()
    assert world.polled() == set(), "once"


def test_a_topic_that_is_created_again_while_it_runs(world: World) -> None:
    world.polled()
    world.topic.logs, world.topic.topic_names = {0: [one(0)], 1: []}, {OTHER: OFFSETS_TOPIC}
    assert world.polled() | world.polled() == REPLACED and world.offsets() == {0: [0]}


def test_a_log_that_lost_records_is_set_aside_alone(world: World) -> None:
    """An unclean election: partition 0 has another record at offset 1."""
    world.polled()
    world.restart()
    world.topic.logs[0] = [one(0), with_base_offset(one(1), 1, 9)]
    world.log.poll()
    (gap,) = world.noted
    assert gap.startswith(f"{LOG}-0: offsets from 2 on are not recorded: ") and "leader epoch 9" in gap
    assert gap.endswith(f"the log before is in former-*/{LOG}-0")
    world.polled()
    assert world.offsets() == {0: [0, 1], 1: [0]}
    assert Batch(world.topic.logs[0][1]).partition_leader_epoch == 9
    kept = [read_small(world.folder, file.name) or b"" for file in world.folder.files()]
    assert any(world.topic.logs[0][1] in data for data in kept)


def test_offsets_that_were_gone_are_a_gap_once(world: World) -> None:
    world.polled()
    world.topic.logs[0], world.topic.first[0] = [one(5)], 5
    assert world.polled() == {f"{LOG}-0: offsets 2 to 4"} and world.polled() == set()
    world.restart()
    assert world.polled() == set()


def named(world: World) -> set[str]:
    """The gaps that stand in the recording, each up to its reason."""
    return {f"{gap.log}: {gap.text.partition(' are not')[0]}" for gap in gaps_in(world.folder)}


def test_a_gap_is_named_whenever_the_recorder_dies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies at each sync of this machine, or change of the store, in turn."""
    sync, write, gap = os.fsync, MemoryStore.write, {f"{LOG}-0: offsets 2 to 4"}
    for change in range(9):
        left = [change]

        def dies(act: Callable[..., Any], *what: object, left: list[int] = left) -> object:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return act(*what)

        world.topic.logs[0], world.topic.first[0] = [one(0), one(1)], 0
        for file in world.folder.files():
            world.folder.delete(file.name)
        world.restart()
        world.polled()
        world.topic.logs[0], world.topic.first[0] = [one(5)], 5
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", partial(dies, sync))
            patched.setattr(MemoryStore, "write", lambda *what: dies(write, *what))
            try:
                world.polled()
            except Killed:
                assert world.offsets()[0] == [0, 1] or named(world) == gap
        world.restart()
        world.polled()
        assert (world.offsets()[0], named(world)) == ([0, 1, 5], gap)
        if left[0]:
            break
    assert change > 1


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(LocalFolder(tmp_path), monkeypatch)
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
    assert world.polled() == set() and world.offsets() == {0: [0, 1, 2, 3], 1: [0]}


def test_what_waits_at_a_url_is_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not stored before an upload: not when the recorder dies, nor when the store does not take it."""
    store = MemoryStore()
    world = World(opened(monkeypatch, store), monkeypatch)
    world.polled()
    monkeypatch.setattr(world.log, "_upload_s", 60.0)
    world.topic.logs[0].append(one(2))
    assert world.polled() == set() and world.offsets()[0] == [0, 1]
    world.restart()
    store.down()
    world.topic.logs[1].append(one(1))
    with pytest.raises(StorageError, match="could not be reached"):
        world.log.poll()
    store.up()
    assert world.polled() == set() and world.offsets() == {0: [0, 1, 2], 1: [0, 1]}
    world.topic.logs[0].append(one(3))
    monkeypatch.setattr(world.log, "_upload_s", 60.0)
    world.polled()
    world.log.flush()
    assert world.offsets() == {0: [0, 1, 2, 3], 1: [0, 1]}


def test_what_waits_of_a_log_that_is_set_aside_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(opened(monkeypatch, MemoryStore()), monkeypatch)
    world.polled()
    monkeypatch.setattr(world.log, "_upload_s", 60.0)
    world.topic.logs[0].append(one(2))
    world.polled()
    world.topic.logs, world.topic.topic_names = {0: [one(0)], 1: []}, {OTHER: OFFSETS_TOPIC}
    assert world.polled() | world.polled() == WAITING_REPLACED
    world.log.flush()
    assert world.offsets() == {0: [0]} and world.offsets(world.former) == {0: [0, 1, 2], 1: [0]}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_log_that_is_set_aside_is_lost_at_no_moment(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder dies at each change of the store in turn: the new log never continues the former one."""
    for change in range(20):
        store = MemoryStore()
        world = World(opened(monkeypatch, store), monkeypatch)
        world.polled()
        world.topic.logs[0].append(one(2))
        world.polled()
        # As many records and the same epochs: only the id shows it.
        world.topic.logs = {0: [one(n) for n in range(5)], 1: [one(n) for n in range(3)]}
        world.topic.topic_names = {OTHER: OFFSETS_TOPIC}
        left = [change]

        def dies(path: str, left: list[int] = left) -> None:
            if not left[0]:
                raise Killed
            left[0] -= 1

        setattr(store, when, dies)
        try:
            world.polled()
        except Killed:
            setattr(store, when, lambda path: None)
            world.restart()
            world.polled()
        assert world.offsets() == {0: [0, 1, 2, 3, 4], 1: [0, 1, 2]}
        formers = {name.partition("/")[0] for name in store.names if name.startswith("former-")}
        kept = [world.offsets(former) for former in formers]
        assert sorted(offset for former in kept for offset in former.get(0, ())) == [0, 1, 2]
        assert named(world) == WAITING_REPLACED
        if left[0]:
            break
    assert change > 6


def test_brokers_that_are_down_are_asked_again(world: World) -> None:
    world.failing = Unreachable("no broker answers")
    world.log.poll()
    assert isinstance(world.log.unread, Unreachable)
    world.failing = None
    assert world.polled() == set() and world.log.unread is None and world.offsets()[0] == [0, 1]
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
    assert "orders" in (read_small(world.folder, "topics.json") or b"").decode()
