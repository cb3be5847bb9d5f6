"""A member of a streams group: one heartbeat API, by tasks (KIP-1071).

Behaves towards the coordinator as Kafka's own Streams client does, except that the host confirms each
revocation. It processes nothing; it owns what its active tasks read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from kgroup.domain import Topic, TopicPartition, grouped
from kgroup.members.beating import JOIN_EPOCH, BeatingMember, Phase
from kgroup.members.effects import (
    Assigned,
    Effect,
    Lost,
    NeedTopics,
    Revoke,
    sorted_partitions,
)
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from kgroup.protocol.streams_records import Endpoint, sources_of

TaskIdsOf: TypeAlias = frozenset[tuple[str, int]]
"""Tasks: subtopology and partition."""


@dataclass(frozen=True, slots=True)
class Given:
    """Tasks by kind."""

    active: TaskIdsOf = frozenset()
    standby: TaskIdsOf = frozenset()
    warmup: TaskIdsOf = frozenset()


NOTHING = Given()


@dataclass(frozen=True, slots=True)
class Application:
    """What a member runs and where; threads of one process share the id, and the endpoint."""

    process_id: str
    topology: Topology
    endpoint: Endpoint | None = None
    rebalance_timeout_ms: int = 300_000


class StreamsMember(BeatingMember[StreamsGroupHeartbeatResponse]):
    """See `GroupMember`. The client makes `member_id`, kept for life; `tasks` are what it has now.

    Kafka 4.3.1 has no static members in streams groups: it has no instance id, and always leaves.
    """

    def __init__(self, group_id: str, member_id: str, application: Application) -> None:
        super().__init__(StreamsGroupHeartbeatResponse, group_id, member_id)
        self.application = application
        self.tasks = NOTHING
        self.statuses: tuple[int, ...] = ()
        self._target = NOTHING
        self._giving_up: TaskIdsOf = frozenset()
        self._reported: Given | None = None
        self._sent: Given | None = None
        self._topics: Mapping[str, Topic] = {}
        self._endpoints = -1

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """See `GroupMember.owned`: task n reads partition n of each source topic that has so many."""
        return self._read_by(self.tasks.active)

    def update_topics(self, topics: Mapping[str, Topic], now_ms: int) -> list[Effect]:
        """See `GroupMember.update_topics`. This may change what its tasks read."""
        before = self.owned
        self._topics = dict(topics)
        after = self.owned
        lost, added = sorted_partitions(before - after), sorted_partitions(after - before)
        return [*([Lost(lost)] if lost else []), *([Assigned(added)] if added else [])]

    def revoked(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.revoked`. Takes what the target adds and notifies the coordinator at once."""
        if self.phase is not Phase.REVOKING:
            return []
        self.tasks = replace(self.tasks, active=self.tasks.active - self._giving_up)
        self.phase = Phase.STABLE
        return self._reconcile(now_ms)

    def _request(self, epoch: int) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=self._endpoints,
        )

    def _heartbeat(self) -> list[Effect]:
        """Join with everything; later report only which tasks it has, if they changed."""
        request = self._request(self.epoch)
        if self.epoch == JOIN_EPOCH:
            said = self.application
            request = replace(
                request,
                rebalance_timeout_ms=said.rebalance_timeout_ms,
                topology=said.topology,
                process_id=said.process_id,
                user_endpoint=said.endpoint,
                client_tags=(),
            )
        if self.epoch == JOIN_EPOCH or self._reported != self.tasks:
            request = replace(
                request,
                active_tasks=_listed(self.tasks.active),
                standby_tasks=_listed(self.tasks.standby),
                warmup_tasks=_listed(self.tasks.warmup),
            )
        self._sent = self.tasks
        return [self._send(request)]

    def _on_heartbeat(self, response: StreamsGroupHeartbeatResponse, now_ms: int) -> list[Effect]:
        self._reported = self._sent
        self.epoch = response.member_epoch
        self._endpoints = response.endpoint_information_epoch
        self.statuses = tuple(status.status_code for status in response.status or ())
        if response.active_tasks is not None:
            self._target = Given(
                _tasks(response.active_tasks),
                _tasks(response.standby_tasks or ()),
                _tasks(response.warmup_tasks or ()),
            )
        if self.phase in (Phase.JOINING, Phase.ACKNOWLEDGING):
            self.phase = Phase.STABLE
        beat = self._wake_at(now_ms + response.heartbeat_interval_ms)
        return [*beat, *(self._reconcile(now_ms) if self.phase is Phase.STABLE else [])]

    def _reconcile(self, now_ms: int) -> list[Effect]:
        """Move one step from the tasks it has to the target: revoke first, then add."""
        if self.phase is not Phase.STABLE or self.tasks == self._target:
            return self._acknowledge()
        self._giving_up = self.tasks.active - self._target.active
        going = self._read_by(self._giving_up)
        if going:
            # Nothing waits for copies: they are dropped, and the next heartbeat reports it.
            kept = self.tasks.standby & self._target.standby, self.tasks.warmup & self._target.warmup
            self.tasks = Given(self.tasks.active, *kept)
            self.phase = Phase.REVOKING
            return [Revoke(sorted_partitions(going))]
        before = self.owned
        self.tasks = self._target
        added = sorted_partitions(self.owned - before)
        unseen = self._unseen()
        asks: list[Effect] = [NeedTopics(unseen)] if unseen and self.tasks.active else []
        return [*asks, *([Assigned(added)] if added else []), *self._acknowledge()]

    def _acknowledge(self) -> list[Effect]:
        """Report which tasks changed, before the next heartbeat is due."""
        if self.phase is not Phase.STABLE or self._reported == self.tasks or self._in_flight is not None:
            return []
        self.phase = Phase.ACKNOWLEDGING
        return self._heartbeat()

    def _report_all_again(self) -> None:
        self._reported = None

    def _drop_all(self) -> None:
        self.tasks = self._target = NOTHING
        self._giving_up = frozenset()

    def _read_by(self, tasks: TaskIdsOf) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(name, number)
            for part in self.application.topology.subtopologies
            for name in sources_of(part)
            if name in self._topics
            for subtopology, number in tasks
            if subtopology == part.subtopology_id and number < self._topics[name].partitions
        )

    def _unseen(self) -> frozenset[str]:
        """Return source topics that are unknown, or had too few partitions when they were looked up."""
        unseen: set[str] = set()
        for part in self.application.topology.subtopologies:
            names = set(sources_of(part))
            unseen.update(names - self._topics.keys())
            sizes = [self._topics[name].partitions for name in names if name in self._topics]
            # A task exists because a topic has its partition: if none is known to, a topic has grown.
            if any(
                key == part.subtopology_id and number >= max(sizes, default=0)
                for key, number in self.tasks.active
            ):
                unseen |= names
        return frozenset(unseen)


def _tasks(listed: Iterable[TaskIds]) -> TaskIdsOf:
    return frozenset((ids.subtopology_id, number) for ids in listed for number in ids.partitions)


def _listed(tasks: TaskIdsOf) -> tuple[TaskIds, ...]:
    parts = grouped(sorted(tasks))
    return tuple(TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in parts.items())
