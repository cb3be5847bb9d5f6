"""The cluster's numbers under the names of Kafka's metrics: computed from the state on request.

Metrics that Kafka keeps per broker are per process here, as all brokers of a cluster share one. Metrics of
queues and write batches are omitted, since a request is served as it is read (docs/not-built.md).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated

from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.consumer.group import ConsumerState
from kgroup.coordinator.groups import type_of
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.share.group import ShareState
from kgroup.coordinator.streams.group import StreamsState
from kgroup.domain import CLASSIC, CONSUMER, GROUP_TYPES, SHARE, STREAMS
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.shard import Shard

MANAGER = "kafka.coordinator.group:type=GroupMetadataManager"
COORDINATOR = "kafka.server:type=group-coordinator-metrics"
OWN = "kgroup:type=group-coordinator-metrics"

CONSUMER_STATES = (*ConsumerState, "Dead")
STREAMS_STATES = (*StreamsState, "Dead")
SHARE_STATES = (*ShareState, "Dead")
RATED = (
    "offset_commit",
    "offset_expiration",
    "offset_deletion",
    "group_completed_rebalance",
    "consumer_group_rebalance",
    "streams_group_rebalance",
    "share_group_rebalance",
)
WINDOW_MS = 30_000
WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Metric:
    """One number. `mbean` and `name` are Kafka's; a `total` only grows, any other is a gauge.

    `value` is None if there is nothing to compute it from yet, such as a rate just after the start.
    """

    mbean: str
    name: str
    value: Annotated[float | None, "null: no data"]
    tags: dict[str, str] = field(default_factory=dict)
    total: Annotated[bool, "whether it only grows"] = False


@dataclass(frozen=True, slots=True)
class _Mark:
    """The counters and the thread's processor time at one moment."""

    at_ms: int
    counters: Counters
    busy_s: float


class Activity:
    """Marks of the last minute, which rates and the idle ratio are computed from.

    A host calls `mark` every WINDOW_MS, from the thread that serves requests, with the processor time
    that thread has used. As in Kafka, a rate covers two windows, of which the later is not over yet.
    """

    def __init__(self, now_ms: int, counters: Counters, busy_s: float) -> None:
        self._marks = deque([_Mark(now_ms, replace(counters), busy_s)], maxlen=WINDOWS)

    def mark(self, now_ms: int, counters: Counters, busy_s: float) -> None:
        """End a window."""
        self._marks.append(_Mark(now_ms, replace(counters), busy_s))

    def rate(self, name: str, now_ms: int, counters: Counters) -> float:
        """Return events per second of one counter; a window that has just begun counts as a whole one."""
        oldest = self._marks[0]
        elapsed_ms = max(now_ms - oldest.at_ms, WINDOW_MS)
        grown: int = getattr(counters, name) - getattr(oldest.counters, name)
        return grown * 1000 / elapsed_ms

    def idle_ratio(self, now_ms: int, busy_s: float) -> float | None:
        """Return the part of the time in which the thread used no processor; None at the very start."""
        oldest = self._marks[0]
        elapsed_ms = now_ms - oldest.at_ms
        if elapsed_ms <= 0:
            return None
        return min(max(1 - (busy_s - oldest.busy_s) * 1000 / elapsed_ms, 0.0), 1.0)


def snapshot(cluster: Cluster, activity: Activity | None = None, busy_s: float = 0.0) -> list[Metric]:
    """Return every metric as it is now; without `activity` those that need marks are None.

    Call it while no request is being served: it reads the live state of every shard.
    """
    shards = list(cluster.live_shards())
    ratio = activity.idle_ratio(cluster.clock.now_ms(), busy_s) if activity else None
    # Loading ends before anything else is served, so a partition in it is never seen.
    states = {"loading": 0, "active": len(shards), "failed": len(cluster.shards) - len(shards)}
    times = cluster.load_times_ms
    return [
        *_groups(shards),
        *_counted(cluster, activity),
        *(Metric(COORDINATOR, "num-partitions", count, {"state": state}) for state, count in states.items()),
        Metric("kgroup:type=logs", "torn-tails-cut-count", cluster.torn_tails, total=True),
        Metric(COORDINATOR, "partition-load-time-max", max(times, default=None)),
        Metric(COORDINATOR, "partition-load-time-avg", sum(times) / len(times) if times else None),
        # One thread: least and mean are one.
        Metric(COORDINATOR, "thread-idle-ratio-min", ratio),
        Metric(COORDINATOR, "thread-idle-ratio-avg", ratio),
    ]


def _groups(shards: list[Shard]) -> Iterator[Metric]:
    by_type: dict[str, Counter[str]] = {protocol: Counter() for protocol in GROUP_TYPES}
    for shard in shards:
        for group in shard.coordinator.state.groups.values():
            by_type[type_of(group)][group.state] += 1
    classic = by_type[CLASSIC]
    offsets = sum(shard.coordinator.state.offsets.count() for shard in shards)
    yield Metric(MANAGER, "NumOffsets", offsets)
    yield Metric(MANAGER, "NumGroups", classic.total())
    for state in ClassicState:
        yield Metric(MANAGER, f"NumGroups{state}", classic[state])
    for protocol, counts in by_type.items():
        yield Metric(COORDINATOR, "group-count", counts.total(), {"protocol": protocol})
    for name in CONSUMER_STATES:
        yield Metric(COORDINATOR, "consumer-group-count", by_type[CONSUMER][name], {"state": str(name)})
    for name in STREAMS_STATES:
        yield Metric(COORDINATOR, "streams-group-count", by_type[STREAMS][name], {"state": str(name)})
    for name in SHARE_STATES:
        yield Metric(COORDINATOR, "share-group-count", by_type[SHARE][name], {"state": str(name)})


def _counted(cluster: Cluster, activity: Activity | None) -> Iterator[Metric]:
    counters, now_ms = cluster.counters, cluster.clock.now_ms()
    for counter in fields(counters):
        name = counter.name.replace("_", "-")
        mbean = COORDINATOR if counter.name in RATED else OWN
        yield Metric(mbean, f"{name}-count", getattr(counters, counter.name), total=True)
        if counter.name in RATED:
            rate = activity.rate(counter.name, now_ms, counters) if activity else None
            yield Metric(COORDINATOR, f"{name}-rate", rate)
