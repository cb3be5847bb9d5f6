"""What threads of an application are answered, where no row of tests/scenarios/streams can say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.coordinator.streams.group import Owners, StreamsGroup, StreamsState
from kgroup.coordinator.streams.member import Current, MemberState
from kgroup.coordinator.streams.reconcile import Goal, reconcile
from kgroup.coordinator.tasks.values import NO_TASK_SET, TaskSet
from kgroup.errors import ErrorCode, Refused
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, shard_over
from tests.unit.coordinator.streams.applications import (
    AT_ONCE,
    CHANGELOG,
    active,
    beat,
    statuses,
    topics,
)


def running(**partitions: int) -> Shard:
    image = topics(**(partitions or {"orders": 2, "app_counts_changelog": 2}))
    return shard_over(config=AT_ONCE, image=image)


def group_of(shard: Shard) -> StreamsGroup:
    group = shard.coordinator.state.groups["app"]
    assert isinstance(group, StreamsGroup)
    return group


def test_nothing_is_assigned_while_topics_are_missing() -> None:
    shard = running(users=1)
    first = beat(shard, "a")
    assert (active(first), statuses(first)) == ({}, {1: "Source topics orders are missing."})
    assert group_of(shard).state is StreamsState.NOT_READY
    shard.topics_changed(topics(orders=3), NOW_MS)
    missed = beat(shard, "a", group_of(shard).members["a"].epoch)
    assert statuses(missed) == {3: f"Internal topics are missing: {CHANGELOG}"}
    [missing] = shard.coordinator.take_missing_topics("app")
    assert (missing.name, missing.partitions) == (CHANGELOG, 3)
    assert shard.coordinator.take_missing_topics("app") == ()
    shard.topics_changed(topics(orders=3, app_counts_changelog=4), NOW_MS)
    [wrong] = statuses(beat(shard, "a", group_of(shard).members["a"].epoch)).values()
    assert wrong == f"Existing topic {CHANGELOG} has different number of partitions: expected 3, found 4"
    shard.topics_changed(topics(orders=3, app_counts_changelog=3), NOW_MS)
    ready = beat(shard, "a", group_of(shard).members["a"].epoch)
    assert (statuses(ready), active(ready)) == ({}, {"0": [0, 1, 2]})


def test_what_is_refused_writes_nothing() -> None:
    shard = running()
    beat(shard, "a")
    before = shard.log.end_offset
    assert beat(shard, "a", 7).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(shard, "a", 2, owned={"0": [5]}, rack_id="r").error_code == ErrorCode.INVALID_REQUEST
    assert shard.log.end_offset == before


@pytest.mark.parametrize("owned", [None, TaskSet({"0": frozenset({0})})])
def test_a_thread_in_a_state_of_a_later_version_must_own_nothing(owned: TaskSet | None) -> None:
    goal = Goal(5, NO_TASK_SET, "p", owned, Owners())
    with pytest.raises(Refused) as refused:
        reconcile(Current(4, 4, MemberState.UNKNOWN), goal)
    assert refused.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(Current(4, 4, MemberState.UNKNOWN), replace(goal, owned=NO_TASK_SET)).epoch == 5
