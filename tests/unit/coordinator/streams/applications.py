"""An application of Kafka Streams as the coordinator sees it: its topology, and heartbeats of its threads."""

from __future__ import annotations

from kgroup.coordinator.config import GroupConfig
from kgroup.domain import Topic, TopicImage
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from kgroup.protocol.streams_records import CopartitionGroup, Subtopology, TopicInfo
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask

AT_ONCE = GroupConfig(streams_initial_delay_ms=0, streams_assignment_interval_ms=0)
CHANGELOG, REPARTITION = "app-counts-changelog", "app-by-user-repartition"
Held = dict[str, list[int]]


def counting() -> Subtopology:
    """Counts what it reads from `orders`."""
    return Subtopology(
        subtopology_id="0", source_topics=("orders",), state_changelog_topics=(TopicInfo(name=CHANGELOG),)
    )


def splitting() -> Subtopology:
    """Reads `orders`, and writes it by another key."""
    return Subtopology(subtopology_id="0", source_topics=("orders",), repartition_sink_topics=(REPARTITION,))


def joining(partitions: int = 0) -> Subtopology:
    """Joins what was split with `users`."""
    return Subtopology(
        subtopology_id="1",
        source_topics=("users",),
        repartition_source_topics=(TopicInfo(name=REPARTITION, partitions=partitions),),
        copartition_groups=(CopartitionGroup(source_topics=(0,), repartition_source_topics=(0,)),),
    )


def topics(**partitions: int) -> TopicImage:
    """Topics by name, underscores for dashes, with their numbers of partitions."""
    named = {name.replace("_", "-"): count for name, count in partitions.items()}
    return TopicImage.of([Topic(name, name.encode().ljust(16)[:16], count) for name, count in named.items()])


def beat(
    shard: Shard,
    member: str,
    epoch: int = 0,
    *,
    owned: Held | None = None,
    parts: tuple[Subtopology, ...] | None = None,
    at_ms: int = NOW_MS,
    **fields: object,
) -> StreamsGroupHeartbeatResponse:
    """What a thread is answered; joining, it brings its topology and says that it owns nothing."""
    tasks = None if owned is None else _ids(owned)
    given = {"process_id": f"process of {member}", "rebalance_timeout_ms": 60_000} if epoch == 0 else {}
    request = StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id=member,
        member_epoch=epoch,
        topology=Topology(epoch=0, subtopologies=parts or (counting(),)) if epoch == 0 else None,
        active_tasks=() if epoch == 0 else tasks,
        standby_tasks=() if epoch == 0 or owned is not None else None,
        warmup_tasks=() if epoch == 0 or owned is not None else None,
        **(given | fields),  # type: ignore[arg-type]
    )
    answer = ask(shard, request, 0, at_ms)
    assert isinstance(answer, StreamsGroupHeartbeatResponse)
    return answer


def _ids(held: Held) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in held.items())


def active(answer: StreamsGroupHeartbeatResponse) -> Held | None:
    """The active tasks that an answer gives; None where it says that nothing changed."""
    if answer.active_tasks is None:
        return None
    return {ids.subtopology_id: list(ids.partitions) for ids in answer.active_tasks}


def statuses(answer: StreamsGroupHeartbeatResponse) -> dict[int, str]:
    return {status.status_code: status.status_detail for status in answer.status or ()}
