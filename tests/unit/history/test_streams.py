"""Streams groups (KIP-1071) out of their records: what happened, and the same state that describe tells."""

from __future__ import annotations

from dataclasses import asdict
from random import Random
from typing import Any

import pytest

from kgroup.admin.read.describe_listed import streams_described
from kgroup.admin.read.replayed import description
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.fold.folding import Fold
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.tasks import Task, may_read, read_by
from kgroup.history.replay import replay
from kgroup.history.verify import differences, uncompared
from kgroup.protocol import group_records as r
from kgroup.protocol import streams_records as s
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask, shard_over
from tests.unit.coordinator.streams.applications import (
    AT_ONCE,
    active,
    beat,
    counting,
    joining,
    splitting,
    topics,
)

from .logs import MemoryLog, batch, commit, items, moved

APP = "app"


def running(**partitions: int) -> Shard:
    return shard_over(
        config=AT_ONCE, image=topics(**(partitions or {"orders": 2, "app_counts_changelog": 2}))
    )


def log_of(shard: Shard) -> MemoryLog:
    return MemoryLog(shard.log.read(0, 1 << 30))


def events_of(shard: Shard) -> list[Event]:
    return replay([log_of(shard)]).events


def state_of(shard: Shard) -> GroupState:
    ((_, state),) = replay([log_of(shard)]).states
    return state


def said_of(shard: Shard, now_ms: int = NOW_MS) -> dict[str, Any]:
    """What `kgroup describe -o json` would say of the group."""
    request = StreamsGroupDescribeRequest(group_ids=(APP,), include_topology_description=True)
    answer = ask(shard, request, 1, now_ms)
    assert isinstance(answer, StreamsGroupDescribeResponse)
    return asdict(streams_described(answer.groups[0], {}))


def texts(events: list[Event], *kinds: Kind) -> list[str]:
    return [event.detail for event in events if not kinds or event.kind in kinds]


def test_two_threads_share_the_tasks_and_the_story_says_how() -> None:
    shard = running()
    beat(shard, "a")
    beat(shard, "b", at_ms=NOW_MS + 10)
    kept = active(beat(shard, "a", 2, owned={"0": [0, 1]}, at_ms=NOW_MS + 20))
    assert kept is not None
    beat(shard, "a", 2, owned=kept, at_ms=NOW_MS + 30)
    beat(shard, "b", 3, at_ms=NOW_MS + 40)
    events = events_of(shard)
    assert {event.protocol for event in events} == {"streams"} and all(event.proven for event in events)
    assert [event.kind.value for event in events] == [
        *("group-created", "member-joined", "topology-set", "topology-ready", "rebalance-started"),
        *("target-computed", "member-reconciled", "rebalance-completed"),
        *("member-joined", "rebalance-started", "target-computed", "member-waiting"),
        *("member-revoking", "member-reconciled", "member-reconciled", "rebalance-completed"),
    ]
    mine, other = kept["0"][0], 1 - kept["0"][0]
    assert texts(events, Kind.TOPOLOGY_SET) == ["topology epoch 0: 0 reads orders"]
    assert texts(events, Kind.MEMBER_WAITING) == [f"b has no tasks, waits for active 0:{other}"]
    assert texts(events, Kind.MEMBER_REVOKING) == [f"a has to give up active 0:{other}"]
    assert texts(events, Kind.MEMBER_RECONCILED)[1:] == [
        f"a has active 0:{mine} at epoch 3, gave up active 0:{other}",
        f"b has active 0:{other} at epoch 3",
    ]
    last = events[-1]
    assert last.detail == "all 2 members reached epoch 3, 30 ms after it began" and last.cause == "b joined"
    assert [(u.topic, u.partition, u.ms) for u in last.unowned] == [("orders", other, 10)]
    assert [b.event for b in blame(events, APP)] == [last]


def test_a_thread_that_goes_an_application_that_ends_and_a_group_that_is_deleted() -> None:
    shard = running()
    beat(shard, "a")
    beat(shard, "a", -1, at_ms=NOW_MS + 10)
    answer = ask(shard, DeleteGroupsRequest(groups_names=(APP,)))
    assert answer is not None
    gone, emptied, deleted = events_of(shard)[-4:-2] + events_of(shard)[-1:]
    assert gone.kind is Kind.MEMBER_LEFT_OR_EXPIRED and not gone.proven
    assert gone.detail == "a is gone, held active 0:0-1" and len(gone.partitions) == 2
    assert emptied.kind is Kind.REBALANCE_STARTED and emptied.cause == "a left or expired"
    assert events_of(shard)[-2].kind is Kind.GROUP_EMPTIED
    assert deleted.kind is Kind.GROUP_DELETED and deleted.protocol == "streams"
    assert replay([log_of(shard)]).folds[0].states == {}


def test_topics_that_are_missing_and_come_later_are_told() -> None:
    shard = running(orders=2)
    beat(shard, "a")
    state = state_of(shard)
    assert (state.view().state, said_of(shard)["state"]) == ("NotReady", "NotReady")
    shard.topics_changed(topics(orders=2, app_counts_changelog=2), NOW_MS + 5)
    beat(shard, "a", 2, at_ms=NOW_MS + 10)
    events = events_of(shard)
    assert texts(events, Kind.TOPOLOGY_NOT_READY) == ["nothing of topology epoch 0 can run"]
    assert texts(events, Kind.TOPOLOGY_READY) == ["all topics that topology epoch 0 needs are there"]
    first, second = (e for e in events if e.kind is Kind.REBALANCE_COMPLETED)
    assert first.detail.endswith("with no tasks: the topology is not ready")
    assert second.cause == "the topics are all there now" and state_of(shard).view().state == "Stable"


def test_other_settings_and_other_metadata_of_a_member_are_told_with_what_they_set_off() -> None:
    shard = running()
    beat(shard, "a", client_tags=(s.KeyValue(key="zone", value="a"),))
    beat(shard, "a", 2, process_id="p2", user_endpoint=s.Endpoint(host="h", port=80), at_ms=NOW_MS + 5)
    events = events_of(shard)
    (updated,) = texts(events, Kind.MEMBER_UPDATED)
    assert updated == "a: process process of a → p2, endpoint None → h:80"
    assert [e.cause for e in events if e.kind is Kind.REBALANCE_STARTED][1:] == ["a came with other metadata"]
    (member,) = state_of(shard).members.values()
    assert member.streams is not None and member.streams.tags == (("zone", "a"),)
    key = s.StreamsGroupMetadataKey(group_id=APP)
    value = s.StreamsGroupMetadataValue(
        epoch=9, validated_topology_epoch=0, last_assignment_configs=(s.KeyValue(key="n", value="1"),)
    )
    changed = batch(shard.log.end_offset, [(r.encode_key(key), r.encode_value(value))])
    events = replay([MemoryLog(shard.log.read(0, 1 << 30) + changed)]).events
    assert texts(events, Kind.SETTINGS_CHANGED) == [
        "targets are made with n=1, before with num.standby.replicas=0"
    ]
    assert events[-1].kind is Kind.REBALANCE_STARTED and "settings changed" in (events[-1].cause or "")


STORED, INTERRUPTED = "stored_description_topology_epoch", -2


@pytest.mark.parametrize(("hashed", "proven"), [(5, True), (0, False)])
def test_metadata_is_the_cause_only_where_it_changed(hashed: int, proven: bool) -> None:
    key = r.encode_key(s.StreamsGroupMetadataKey(group_id=APP))
    epochs = ((1, 0), (2, hashed))
    values = [
        r.encode_value(s.StreamsGroupMetadataValue(epoch=n, metadata_hash=h, validated_topology_epoch=0))
        for n, h in epochs
    ]
    log = MemoryLog(b"".join(batch(n, [(key, value)], 1000 * n) for n, value in enumerate(values)))
    event = [e for e in replay([log]).events if e.kind is Kind.REBALANCE_STARTED][-1]
    assert event.proven is proven
    assert (event.cause or "").startswith("the metadata of the topology's topics changed") is proven


@pytest.mark.parametrize(
    ("fields", "described", "says"),
    [
        ({STORED: 0}, "stored", "the description of topology epoch 0 is stored"),
        ({STORED: 7}, "not_stored", "the description of topology epoch 7 is stored"),
        (
            {STORED: INTERRUPTED},
            "unknown",
            "an update of the topology's description was begun: until it ends, it is unknown what is stored",
        ),
        (
            {"failed_description_topology_epoch": 0},
            "refused",
            "the broker's plugin refused the description of topology epoch 0 for good",
        ),
    ],
)
def test_what_the_records_say_of_the_topologys_description(
    fields: dict[str, int], described: str, says: str
) -> None:
    """KIP-1331: record 17 names the epoch whose description is stored, or was refused; none holds it."""
    shard = running()
    beat(shard, "a")
    topology = description(state_of(shard), 0).topology
    assert topology is not None and (topology.described, topology.description) == ("not_stored", None)
    value = s.StreamsGroupMetadataValue(epoch=1, validated_topology_epoch=0, **fields)
    key = r.encode_key(s.StreamsGroupMetadataKey(group_id=APP))
    log = MemoryLog(shard.log.read(0, 1 << 30) + batch(shard.log.end_offset, [(key, r.encode_value(value))]))
    told = replay([log])
    assert texts(told.events, Kind.DESCRIPTION_CHANGED) == [says]
    ((_, state),) = told.states
    topology = description(state, 0).topology
    assert topology is not None and (topology.described, topology.description) == (described, None)


def test_a_static_member_leaves_for_now_and_comes_back_under_another_id() -> None:
    """Kafka 4.4: epoch -2 keeps the tasks, and the instance id makes the newcomer the same member."""
    shard = running()
    beat(shard, "a", instance_id="i")
    beat(shard, "a", -2, instance_id="i", at_ms=NOW_MS + 5)
    (member,) = state_of(shard).members.values()
    assert (member.instance_id, member.epoch, member.state) == ("i", -2, "left")
    (said,) = said_of(shard)["members"]
    assert (said["instance_id"], said["member_epoch"], said["state"]) == ("i", -2, "left")
    beat(shard, "b", instance_id="i", at_ms=NOW_MS + 9)
    events = events_of(shard)
    assert texts(events, Kind.MEMBER_LEFT_FOR_NOW) == ["i left for now and keeps active 0:0-1"]
    (replaced,) = (event for event in events if event.kind is Kind.MEMBER_REPLACED)
    assert (replaced.detail, replaced.proven) == ("i came back under a new member id", True)
    assert (replaced.member_id, replaced.instance_id) == ("b", "i")


def test_an_epoch_that_went_back_is_suspicious() -> None:
    shard = running()
    beat(shard, "a")
    key = s.StreamsGroupMetadataKey(group_id=APP)
    back = batch(
        shard.log.end_offset, [(r.encode_key(key), r.encode_value(s.StreamsGroupMetadataValue(epoch=1)))]
    )
    events = replay([MemoryLog(shard.log.read(0, 1 << 30) + back)]).events
    (event,) = (e for e in events if e.kind is Kind.EPOCH_REGRESSED)
    assert event.suspicious


def test_a_commit_of_what_no_task_reads_is_suspicious_and_one_of_a_task_is_not() -> None:
    shard = running()
    beat(shard, "a")
    end = shard.log.end_offset
    more = batch(end, [commit("orders", 0, 5, group=APP), commit("pay", 0, 5, group=APP)])
    events = replay([MemoryLog(shard.log.read(0, 1 << 30) + more)]).events
    kinds = {e.kind: e.partitions for e in events if e.kind.value.startswith("committed")}
    assert kinds == {
        Kind.COMMITTED: (TopicPartition("orders", 0),),
        Kind.COMMITTED_UNOWNED: (TopicPartition("pay", 0),),
    }


def test_of_topics_that_need_not_be_of_one_size_only_what_is_certain_is_told() -> None:
    merged = s.Subtopology(subtopology_id="0", source_topics=("a", "b"))
    one, both = joining(2), s.StreamsGroupTopologyValue(epoch=0, subtopologies=(merged, joining(2)))
    assert read_by(both, [Task("0", 3)]) == frozenset()
    assert may_read(both, [Task("0", 3)], TopicPartition("b", 3))
    assert not may_read(both, [Task("0", 3)], TopicPartition("b", 2))
    names = {"users", one.repartition_source_topics[0].name}
    assert read_by(both, [Task("1", 5)]) == {TopicPartition(name, 5) for name in names}
    declared = s.Subtopology(
        subtopology_id="0",
        source_topics=("a",),
        repartition_source_topics=(s.TopicInfo(name="again", partitions=2),),
    )
    alone = s.StreamsGroupTopologyValue(epoch=0, subtopologies=(declared,))
    assert read_by(alone, [Task("0", 1), Task("0", 2)]) == {TopicPartition("again", 1)}
    assert read_by(None, [Task("0", 1)]) == frozenset() and may_read(None, [], TopicPartition("a", 1))


PARTS = ((counting(),), (splitting(), joining()))
TOPICS = {"orders": 3, "users": 3, "app_counts_changelog": 3, "app_by_user_repartition": 3}


class Threads:
    """Threads of an application that join, go on, go and stay silent, as chance has it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.image = dict(TOPICS) if self.chance.random() < 0.5 else {"orders": 3, "users": 3}
        self.shard = running(**self.image)
        self.parts = self.chance.choice(PARTS)
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[str, list[int]]] = {}
        self.now_ms = NOW_MS

    def act(self) -> None:
        self.now_ms += self.chance.choice((1, 500, 3000))
        member = self.chance.choice("abcd")
        match self.chance.random():
            case luck if luck < 0.1 and member in self.epochs:
                beat(self.shard, member, -1, at_ms=self.now_ms)
                self._forget(member)
            case luck if luck < 0.15:
                self.image = dict(TOPICS)
                self.shard.topics_changed(topics(**self.image), self.now_ms)
            case luck if luck < 0.2:
                self.now_ms += 50_000
                self.shard.wake(self.now_ms)
            case _:
                self._beat(member)

    def _beat(self, member: str) -> None:
        epoch = self.epochs.get(member, 0)
        owned = self.owned.get(member) if epoch and self.chance.random() < 0.8 else None
        process = f"process {ord(member) % 2}"
        given: dict[str, object] = {"process_id": process} if epoch == 0 else {}
        answer = beat(self.shard, member, epoch, owned=owned, parts=self.parts, at_ms=self.now_ms, **given)
        if answer.error_code:
            self._forget(member)
            return
        self.epochs[member] = answer.member_epoch
        held = active(answer)
        if held is not None:
            self.owned[member] = held

    def _forget(self, member: str) -> None:
        self.epochs.pop(member, None)
        self.owned.pop(member, None)


@pytest.mark.parametrize("seed", range(12))
def test_after_every_request_the_log_says_what_describe_says(seed: int) -> None:
    threads = Threads(seed)
    for _ in range(40):
        threads.act()
        if isinstance(threads.shard.coordinator.state.groups.get(APP), StreamsGroup):
            state = state_of(threads.shard)
            said = said_of(threads.shard, threads.now_ms)
            assert list(differences(state, said)) == [] and uncompared(state, said) == []
    assert threads.shard.log.end_offset > 20
    assert not [e for e in events_of(threads.shard) if e.suspicious or e.kind is Kind.RECORD_UNREADABLE]


@pytest.mark.parametrize("seed", range(4))
def test_a_fold_that_goes_on_elsewhere_tells_the_same(seed: int) -> None:
    threads = Threads(seed)
    for _ in range(40):
        threads.act()
    log = items(threads.shard.log.read(0, 1 << 30))
    whole, parts, told = Fold(0), Fold(0), []
    expected = [event for item in log for event in whole.apply(item)] + whole.finish()
    for item in log:
        moved(parts)
        told += parts.apply(item)
    assert told + parts.finish() == expected
    assert parts.states[APP].view() == whole.states[APP].view()
