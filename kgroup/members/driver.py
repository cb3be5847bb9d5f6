"""Run one member against a cluster: a blocking loop that executes the member's effects."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from kgroup.domain import Topic, TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.members.effects import (
    Assigned,
    Committed,
    CoordinatorMoved,
    Effect,
    Failed,
    GroupMember,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    Send,
    WakeAt,
)
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.transport import Transport
from kgroup.security.rights import DESCRIBE, READ, lacking, on_group, on_topic

FIND_COORDINATOR = 10
BATCHES_FROM = 4
NO_CREATION_FROM = 4
PARKED_S = 300.0 + 5.0  # The default rebalance timeout, and the network's time.
RETRY_MS = 100
METADATA_MAX_AGE_MS = 300_000

Event = Revoke | Assigned | Lost | Committed | Failed | Left


class Driver:
    """One member and its cluster.

    `clock_ms` returns the time; `pause(seconds)` sleeps at most that long, and returns True once the member
    should leave (as a `threading.Event`'s `wait`); `on_event` receives partitions, commits and the end, and
    may call `commit`. An answer to JoinGroup or SyncGroup is awaited for `PARKED_S`.
    """

    def __init__(
        self,
        member: GroupMember,
        transport: Transport,
        *,
        clock_ms: Callable[[], int],
        pause: Callable[[float], bool],
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._member = member
        self._transport = transport
        self._clock_ms = clock_ms
        self._pause = pause
        self._on_event = on_event
        self._effects: deque[Effect] = deque()
        self._coordinator: int | None = None
        self._wake_ms: int | None = None
        self._topics: dict[str, Topic] = {}
        self._looked_for: frozenset[str] | None = frozenset()
        self._look_up_ms: int | None = None
        self._leaving = False
        self._over = False

    def run(self, for_good: bool = False) -> None:
        """Join, stay until `pause` says to stop or the member fails, then leave.

        A static member keeps its place unless it leaves `for_good`. Unreachable brokers are tried again
        until then.
        """
        self._take(self._member.start(self._clock_ms()))
        while not self._over:
            if self._effects:
                self._carry_out(self._effects.popleft())
            elif self._leaving:
                break
            elif self._pause(self._idle_s()):
                self._leaving = True
                self._take(self._member.leave(self._clock_ms(), for_good))
            else:
                now_ms = self._clock_ms()
                if self._wake_ms is not None and now_ms >= self._wake_ms:
                    self._wake_ms = None
                    self._take(self._member.wake(now_ms))
                if self._look_up_ms is not None and now_ms >= self._look_up_ms:
                    self._look_up(self._looked_for)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit positions now; `on_event` receives the outcome."""
        for effect in self._member.commit(offsets, self._clock_ms()):
            self._carry_out(effect)

    def act(self, effects: Iterable[Effect]) -> None:
        """Execute effects from outside the member's own course, when `pause` returns."""
        self._take(effects)

    def _idle_s(self) -> float:
        moments = [ms for ms in (self._wake_ms, self._look_up_ms) if ms is not None]
        due_ms = min(moments) - self._clock_ms() if moments else METADATA_MAX_AGE_MS
        return max(due_ms, 0) / 1000

    def _take(self, effects: Iterable[Effect]) -> None:
        self._effects.extend(effects)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._call(effect)
            case WakeAt():
                self._wake_ms = effect.ms
            case NeedTopics():
                self._look_up(effect.names)
            case CoordinatorMoved():
                self._coordinator = None
            case Revoke():
                self._on_event(effect)
                self._take(self._member.revoked(self._clock_ms()))
            case _:
                self._on_event(effect)
                self._over = self._over or isinstance(effect, Failed | Left)

    def _call(self, send: Send) -> None:
        parked = isinstance(send.request, JoinGroupRequest | SyncGroupRequest)
        try:
            node = self._find_coordinator()
            if node is None:
                self._unanswered(send)
                return
            response = self._transport.request(
                node,
                send.request,
                min_version=send.min_version,
                max_version=send.max_version,
                timeout_s=PARKED_S if parked else None,
            )
        except Unreachable:
            self._coordinator = None
            self._unanswered(send)
            return
        except BrokerRefused as error:
            self._on_event(Failed(error.code, error.message))
            self._over = True
            return
        self._take(self._member.receive(send.request, response, self._clock_ms()))

    def _unanswered(self, send: Send) -> None:
        self._take(self._member.unanswered(send.request, self._clock_ms()))

    def _find_coordinator(self) -> int | None:
        """Return the coordinator's node id; None if no broker names one now."""
        if self._coordinator is None:
            group = self._member.group_id
            served = self._transport.versions(None, FIND_COORDINATOR)
            batches = served is None or served[-1] >= BATCHES_FROM
            request = FindCoordinatorRequest(
                key="" if batches else group, coordinator_keys=(group,) if batches else ()
            )
            response = self._transport.request(None, request)
            assert isinstance(response, FindCoordinatorResponse)
            answer = response.coordinators[0] if batches else response
            code = answer.error_code
            if code and not ErrorCode(code).retriable:
                missing = lacking(code, on_group(READ, group))
                why = ErrorCode.name_of(code) + (f": {missing}" if missing else "")
                raise BrokerRefused(code, f"coordinator of group {group}: {why}")
            self._coordinator = None if code else answer.node_id
        return self._coordinator

    def _look_up(self, names: frozenset[str] | None) -> None:
        """Fetch metadata of these topics, or of all; an unreachable broker is asked again soon."""
        requested = None if names is None else tuple(MetadataRequestTopic(name=n) for n in sorted(names))
        request = MetadataRequest(topics=requested, allow_auto_topic_creation=False)
        self._looked_for = names
        try:
            metadata = self._transport.request(None, request, min_version=NO_CREATION_FROM)
        except Unreachable:
            self._look_up_ms = self._clock_ms() + RETRY_MS
            return
        assert isinstance(metadata, MetadataResponse)
        self._look_up_ms = self._clock_ms() + METADATA_MAX_AGE_MS
        for name in tuple(self._topics) if names is None else names:
            self._topics.pop(name, None)
        racks = {broker.node_id: broker.rack for broker in metadata.brokers}
        for topic in metadata.topics:
            if topic.name is not None and not topic.error_code:
                placed = sorted(topic.partitions, key=lambda entry: entry.partition_index)
                replicas = tuple(
                    tuple(sorted({rack for node in entry.replica_nodes if (rack := racks.get(node))}))
                    for entry in placed
                )
                self._topics[topic.name] = Topic(
                    topic.name, topic.topic_id, len(placed), replicas if any(replicas) else ()
                )
            elif topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                # As Kafka's consumer does: it would wait for partitions that it is never shown.
                missing = lacking(topic.error_code, on_topic(DESCRIBE, topic.name or ""))
                said = f"topic {topic.name}: {ErrorCode.name_of(topic.error_code)}: {missing}"
                raise BrokerRefused(topic.error_code, said)
        self._take(self._member.update_topics(self._topics, self._clock_ms()))
