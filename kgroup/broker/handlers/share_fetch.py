"""ShareFetch and ShareAcknowledge: records of a share session, and their acknowledgement (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.fetch import decided, leader_of, node_endpoints
from kgroup.broker.handlers.partitions import code_of, partition_log
from kgroup.broker.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from kgroup.broker.wakeups import Deadline
from kgroup.broker.watchers import Key
from kgroup.domain import grouped
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import Log, OffsetOutOfRange
from kgroup.protocol.batches import EXTENT, LENGTH_OFFSET, batches_in
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import share_acknowledge as acknowledging
from kgroup.protocol.messages.fetch import LeaderIdAndEpoch
from kgroup.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kgroup.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kgroup.protocol.releases import SHARE_VERSION
from kgroup.share.aborted import aborted_extents
from kgroup.share.acquire import Extent, Wish
from kgroup.share.coordinator import StateKey
from kgroup.share.partition import SharePartition
from kgroup.share.settle import Acknowledge

LONGEST_MEMBER_ID = 36
RENEWS_SINCE = 2
MODES = _, BY_RECORD = range(2)
"""How records are acquired: whole batches, or no more than as many records as asked for."""
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})

Readable: TypeAlias = Callable[[str], bool]
Acknowledged: TypeAlias = dict[StateKey, Refused | None]
"""Why records could not be acknowledged; None if they are."""
Batches: TypeAlias = Mapping[StateKey, tuple[AcknowledgementBatch, ...]]


def refuse_if_off(broker: Dispatcher) -> None:
    """Raise UNSUPPORTED_VERSION while the feature behind share groups is off."""
    if not broker.cluster.catalog.features.levels.get(SHARE_VERSION):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "The share group protocol is not enabled.")


def fetch(broker: Dispatcher, call: Call[ShareFetchRequest], readable: Readable | None = None) -> Answer:
    """Acknowledge, then acquire what there is of the session's partitions, or park until there is something.

    `readable` returns whether a topic may be read; None for all.
    """
    refuse_if_off(broker)
    request = call.body
    group_id, member = _named(request.group_id, request.member_id)
    batches: Batches = {
        StateKey(group_id, topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    acknowledges = any(batches.values())
    renews = call.version >= RENEWS_SINCE and request.is_renew_ack
    if renews and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "maxBytes, minBytes, maxRecords and maxWaitMs must be set to 0 if isRenewAck is true.",
        )
    sessions = broker.share_sessions(call.node)
    if request.share_session_epoch == INITIAL_EPOCH:
        if acknowledges:
            raise Refused(ErrorCode.INVALID_REQUEST)
        session = sessions.open(group_id, member, batches, call.peer)
    else:
        session = sessions.find(group_id, member, request.share_session_epoch)
        if request.share_session_epoch != FINAL_EPOCH:
            _change(session, group_id, request)
            sessions.go_on(session)
    said = settle(
        broker,
        call,
        member,
        batches if acknowledges else {},
        readable,
        may_renew=call.version >= RENEWS_SINCE,
        renews=renews,
    )
    work = _Fetch(broker, call, session, member, said, readable)
    if request.share_session_epoch == FINAL_EPOCH:
        answer = work.answer({})
        sessions.close(session)
        return answer
    return work.answer({}) if renews else work.begin()


def acknowledge(
    broker: Dispatcher, call: Call[ShareAcknowledgeRequest], readable: Readable | None = None
) -> Answer:
    """Settle records of the member's session; the last request of a session releases all others.

    `readable` returns whether a topic may be read; None for all.
    """
    refuse_if_off(broker)
    request = call.body
    group_id, member = _named(request.group_id, request.member_id)
    sessions = broker.share_sessions(call.node)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise Refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = sessions.find(group_id, member, request.share_session_epoch)
    last = request.share_session_epoch == FINAL_EPOCH
    if not last:
        sessions.go_on(session)
    batches = {
        StateKey(group_id, topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    may_renew = call.version >= RENEWS_SINCE
    said = settle(
        broker,
        call,
        member,
        batches,
        readable,
        may_renew=may_renew,
        renews=may_renew and request.is_renew_ack,
    )
    if last:
        sessions.close(session)
    by_topic = grouped((key.topic_id, (key, refused)) for key, refused in said.items())
    leaders: set[int] = set()
    responses = tuple(
        ShareAcknowledgeTopicResponse(
            topic_id=topic_id,
            partitions=tuple(
                acknowledging.PartitionData(
                    partition_index=key.partition,
                    error_code=refused.code if refused else ErrorCode.NONE,
                    error_message=refused.message if refused else None,
                    current_leader=_leader(broker, key, refused, leaders),
                )
                for key, refused in of_topic
            ),
        )
        for topic_id, of_topic in by_topic.items()
    )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.share_partitions.settings(group_id).share_lock_ms,
        responses=responses,
        node_endpoints=node_endpoints(broker, call, sorted(leaders)),
    )


def settle(
    broker: Dispatcher,
    call: Call[Message],
    member: str,
    batches: Batches,
    readable: Readable | None,
    *,
    may_renew: bool,
    renews: bool,
) -> Acknowledged:
    """Acknowledge records, partition by partition.

    As in Kafka, partitions without batches are in the answer only if another has some that can be settled.
    """
    highest = Acknowledge.RENEW if may_renew else Acknowledge.REJECT
    said: Acknowledged = {}
    settles = False
    for key, of_partition in batches.items():
        said[key] = None
        try:
            if key.topic_id not in broker.cluster.catalog.image.by_id:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
            end = -1
            for batch in of_partition:
                types, count = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
                wrong = (
                    count < 1
                    or batch.first_offset < end
                    or len(types) not in (1, count)
                    or not all(0 <= kind <= highest for kind in types)
                    or (Acknowledge.RENEW in types and not renews)
                )
                if wrong:
                    raise Refused(ErrorCode.INVALID_REQUEST)
                end = batch.last_offset
            _topic(broker, key, readable)
            if of_partition:
                settles = True
                broker.share_partitions.acknowledge(key, member, of_partition)
        except Refused as refused:
            said[key] = refused
    return said if settles else {key: refused for key, refused in said.items() if refused is not None}


def check_member_id(member: str | None) -> str:
    """Return the id of a member of a share group; INVALID_REQUEST for none, or one longer than a UUID."""
    # Java counts UTF-16 code units.
    if not member or len(member.encode("utf-16-be", "surrogatepass")) > 2 * LONGEST_MEMBER_ID:
        raise Refused(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return member


def _named(group_id: str | None, member: str | None) -> tuple[str, str]:
    if group_id is None:
        raise Refused(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    return group_id, check_member_id(member)


def _change(session: ShareSession, group_id: str, request: ShareFetchRequest) -> None:
    """Add partitions to the session and remove some; new ones are to be in the next answer."""
    for topic in request.topics:
        for added in topic.partitions:
            session.partitions.setdefault(StateKey(group_id, topic.topic_id, added.partition_index), True)
    for forgotten in request.forgotten_topics_data:
        for partition in forgotten.partitions:
            session.partitions.pop(StateKey(group_id, forgotten.topic_id, partition), None)


def _topic(broker: Dispatcher, key: StateKey, readable: Readable | None) -> str:
    """Return the name of a partition's topic; Refused if there is none or it may not be read."""
    topic = broker.cluster.catalog.image.by_id.get(key.topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    if readable is not None and not readable(topic.name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not 0 <= key.partition < topic.partitions:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic.name


@dataclass(slots=True)
class Open:
    """A partition that can be read now: its start, and what its log has there."""

    name: str
    share: SharePartition
    log: Log
    offset: int
    records: bytes = b""
    aborted: list[tuple[int, int]] = field(default_factory=list)


class Looked(NamedTuple):
    """The partitions that can be read, those that cannot and why, and the available bytes."""

    open: dict[StateKey, Open]
    refused: dict[StateKey, Refused]
    size: int


class _Fetch:
    """A ShareFetch under way: answered at once, or parked until records or its time come."""

    __slots__ = ("_broker", "_call", "_deadline", "_member", "_readable", "_said", "_session", "_watched")

    def __init__(
        self,
        broker: Dispatcher,
        call: Call[ShareFetchRequest],
        session: ShareSession,
        member: str,
        said: Acknowledged,
        readable: Readable | None,
    ) -> None:
        self._broker = broker
        self._call = call
        self._session = session
        self._member = member
        self._said = said
        self._readable = readable
        self._deadline: Deadline | None = None
        self._watched: dict[StateKey, Key] = {}

    def begin(self) -> Answer:
        """Return the answer if there is something to report, or park."""
        request = self._call.body
        unknown_mode = request.share_acquire_mode not in MODES
        if unknown_mode or request.max_records == 0 or request.max_bytes == 0:
            unreadable = self._unreadable()
            if unknown_mode and len(unreadable) < len(self._session.partitions):
                raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
            if not unknown_mode:
                return self._answered(Looked({}, unreadable, 0))
        looked = self._look()
        enough = looked.size >= max(min(request.min_bytes, request.max_bytes), 1)
        if enough or looked.refused or request.max_wait_ms <= 0:
            return self._answered(looked)
        names = {
            key: self._broker.cluster.catalog.image.name_of(key.topic_id) for key in self._session.partitions
        }
        self._watched = {key: (name, key.partition) for key, name in names.items() if name is not None}
        self._broker.watchers.watch(self._watched.values(), self._changed)
        self._broker.share_partitions.watch(self._watched, self._changed)
        due_ms = self._broker.clock.now_ms() + request.max_wait_ms
        self._deadline = self._broker.wakeups.at(due_ms, self._expire)
        self._call.forget = self._forget
        return None

    def answer(self, partitions: Mapping[StateKey, PartitionData]) -> ShareFetchResponse:
        """Return the response with what was acquired, and how the acknowledgements ended."""
        leaders: set[int] = set()
        # In the answer is a partition with records, with an error, or for the first time.
        first = self._call.body.share_session_epoch == INITIAL_EPOCH
        awaited = self._session.partitions
        entries: dict[StateKey, PartitionData] = {}
        for key, data in partitions.items():
            if first or data.records or data.error_code != 0 or awaited.get(key, False):
                entries[key] = data
            if not first and key in awaited:
                awaited[key] = data.error_code != 0
        for key, refused in self._said.items():
            data = entries.get(key, PartitionData(partition_index=key.partition))
            if refused is not None:
                data = replace(
                    data, acknowledge_error_code=refused.code, acknowledge_error_message=refused.message
                )
                _leader(self._broker, key, refused, leaders)
            entries[key] = data
        by_topic = grouped((key.topic_id, data) for key, data in entries.items())
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._broker.share_partitions.settings(
                self._session.group_id
            ).share_lock_ms,
            responses=tuple(
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(of_topic))
                for topic_id, of_topic in by_topic.items()
            ),
            node_endpoints=node_endpoints(
                self._broker,
                self._call,
                sorted(
                    leaders
                    | {
                        data.current_leader.leader_id
                        for data in entries.values()
                        if data.error_code in _MOVED
                    }
                ),
            ),
        )

    def _unreadable(self) -> dict[StateKey, Refused]:
        """Return the partitions of the session that do not exist or may not be read."""
        refusals: dict[StateKey, Refused] = {}
        for key in self._session.partitions:
            try:
                _topic(self._broker, key, self._readable)
            except Refused as refused:
                refusals[key] = refused
        return refusals

    def _look(self) -> Looked:
        """Find the partitions that can be read, each time from another one on, and read their logs."""
        keys = list(self._session.partitions)
        turn = self._call.body.share_session_epoch % len(keys) if keys else 0
        open_: dict[StateKey, Open] = {}
        refused: dict[StateKey, Refused] = {}
        for key in (*keys[turn:], *keys[:turn]):
            try:
                name = _topic(self._broker, key, self._readable)
                _, log = partition_log(self._broker, self._call.node, name, key.partition)
                share = self._broker.share_partitions.of(key, log, self._call.node)
                if share.can_acquire():
                    open_[key] = Open(name, share, log, share.next_offset())
            except (Refused, StorageError) as error:
                refused[key] = self._refused(key, error)
        if self._call.body.max_bytes < 0:
            # Kafka fails where it divides them among the partitions.
            text = "Request max bytes must be greater than 0"
            refused |= dict.fromkeys(open_, Refused(ErrorCode.UNKNOWN_SERVER_ERROR, text))
            open_ = {}
        size = self._read(open_, refused)
        return Looked(open_, refused, size)

    def _read(self, open_: dict[StateKey, Open], refused: dict[StateKey, Refused]) -> int:
        """Read the logs, each as much as another and the first one at least one batch."""
        left = min(self._call.body.max_bytes, self._broker.cluster.settings.fetch_max_bytes)
        portion, total = left // max(len(open_), 1), 0
        isolation = self._broker.share_partitions.settings(self._session.group_id).share_isolation
        for key, opened in list(open_.items()):
            limit = min(portion, left - total)
            if limit <= 0 and total:
                continue
            try:
                records = opened.log.read(opened.offset, max(limit, 1))
                if len(records) > limit and total:
                    continue
                if isolation == "read_committed":
                    producers = self._broker.producers.of(opened.name, key.partition, opened.log)
                    records, end = decided(records, producers.last_stable_offset)
                    opened.aborted = producers.aborted_between(opened.offset, end)
                opened.records = records
                total += len(records)
            except OffsetOutOfRange:
                opened.share.log_start_moved(opened.log.start_offset)
            except StorageError as error:
                del open_[key]
                refused[key] = self._refused(key, error)
        return total

    def _refused(self, key: StateKey, error: Refused | StorageError) -> Refused:
        if isinstance(error, Refused):
            return error
        return Refused(code_of(self._broker, self._call, error), error.message)

    def _answered(self, looked: Looked) -> ShareFetchResponse:
        """Acquire, and return the response."""
        request = self._call.body
        partitions: dict[StateKey, PartitionData] = {}
        left, now_ms = request.max_records, self._broker.clock.now_ms()
        for key, opened in looked.open.items():
            extents, at = [], 0
            while at < len(opened.records):
                base, length, last_delta = EXTENT.unpack_from(opened.records, at)
                extents.append(Extent(base, base + last_delta))
                at += length + LENGTH_OFFSET
            aborted = aborted_extents(batches_in(opened.records), opened.aborted) if opened.aborted else ()
            wish = Wish(
                self._member,
                left,
                max(request.batch_size, 1),
                by_record=request.share_acquire_mode == BY_RECORD,
            )
            got = opened.share.acquire(wish, opened.offset, extents, now_ms, aborted)
            left -= got.size
            partitions[key] = PartitionData(
                partition_index=key.partition,
                records=_slice(opened.records, got.records),
                acquired_records=tuple(got.records),
            )
            self._broker.share_partitions.arm(key)
        leaders: set[int] = set()
        for key, refused in looked.refused.items():
            partitions[key] = PartitionData(
                partition_index=key.partition,
                error_code=refused.code,
                error_message=refused.message,
                current_leader=_leader(self._broker, key, refused, leaders),
            )
        return self.answer(partitions)

    def _changed(self, _: Key) -> None:
        looked = self._look()
        request = self._call.body
        if looked.refused or looked.size >= max(min(request.min_bytes, request.max_bytes), 1):
            self._end(looked)

    def _expire(self) -> None:
        self._end(self._look())

    def _end(self, looked: Looked) -> None:
        self._forget()
        self._call.answer(self._answered(looked))

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._broker.watchers.unwatch(self._watched.values(), self._changed)
        self._broker.share_partitions.unwatch(self._watched, self._changed)


def _slice(records: bytes, acquired: list[AcquiredRecords]) -> bytes:
    """Return the whole batches that have what was acquired."""
    if not acquired:
        return b""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    start, at = 0, 0
    while at < len(records):
        base, length, last_delta = EXTENT.unpack_from(records, at)
        if base > last:
            break
        at += length + LENGTH_OFFSET
        if base + last_delta < first:
            start = at
    return records[start:at]


def _leader(
    broker: Dispatcher, key: StateKey, refused: Refused | None, leaders: set[int]
) -> LeaderIdAndEpoch:
    """Return the other broker that leads a partition (KIP-951)."""
    name = broker.cluster.catalog.image.name_of(key.topic_id)
    if refused is None or refused.code not in _MOVED or name is None:
        return LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
    leader = leader_of(broker, name, key.partition)
    leaders.add(leader.leader_id)
    return leader


APIS = (
    Api(ShareFetchRequest, fetch),
    Api(ShareAcknowledgeRequest, acknowledge),
)
