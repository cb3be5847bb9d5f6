"""The live topic of a cluster: raw batches by Fetch, with their bounds and transaction markers.

A consumer library hides what a history needs: control batches (how transactions ended), batch bounds (what
was written as one), and everything after an open transaction. So this uses Fetch itself, over any transport.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kgroup.domain import OFFSETS_TOPIC, ZERO_UUID, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.log_items import BadRange, Problem
from kgroup.history.sources.chunks import Progress
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.protocol.transport import Transport
from kgroup.security.rights import READ, lacking, on_topic

FETCH_BYTES = 8 << 20
EARLIEST, LATEST = -2, -1
_NAMES_UP_TO = 12
"""The last version of Fetch that names topics; later ones take ids (KIP-516), and old brokers have none."""
_MOVED = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.OFFSET_NOT_AVAILABLE}
)
_TRIES = 5


class LiveTopic:
    """A coordinator's topic of a cluster: its partitions with their leaders, and all topics' names by id.

    `with_names=False` asks for this topic only: a cluster may have very many.
    """

    def __init__(
        self,
        transport: Transport,
        timeout_s: float = 30.0,
        with_names: bool = True,
        name: str = OFFSETS_TOPIC,
    ) -> None:
        self.transport = transport
        self.name = name
        self.timeout_s = timeout_s
        self.with_names = with_names
        self.leaders: dict[int, int] = {}
        self.topic_names: dict[bytes, str] = {}
        self.cluster_id: str | None = None
        self._mute: dict[int, Unreachable] = {}
        self._looked_again = False
        self.refresh()

    @property
    def partitions(self) -> list[int]:
        return sorted(self.leaders)

    def by_partition(self, group_ids: Iterable[str]) -> dict[int, list[str]]:
        """Return the groups by the partition that has their records, in the order of the partitions."""
        groups: dict[int, list[str]] = {}
        for group_id in group_ids:
            groups.setdefault(offsets_partition_of(group_id, len(self.leaders)), []).append(group_id)
        return dict(sorted(groups.items()))

    def knows(self, topic_id: bytes) -> bool:
        """Return whether a topic with this id is there now; so does one of a commit that has no id."""
        return topic_id == ZERO_UUID or topic_id in self.topic_names

    def log(self, partition: int) -> LiveLog:
        """Return a partition's log; BrokerRefused for one that is not in the metadata."""
        if partition not in self.leaders:
            missing = f"{self.name}-{partition} is not in the metadata"
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)
        return LiveLog(self, partition)

    def try_again(self) -> None:
        """Begin a round: ask brokers again that did not answer, and look up missing leaders."""
        self._mute.clear()
        self._looked_again = False

    def refresh(self, names: Mapping[bytes, str] | None = None) -> None:
        """Look up leaders and names again; BrokerRefused when the topic is missing or not readable.

        `names` of all topics, where they are known already, are not requested.
        """
        topics = self._metadata(None).topics if self.with_names and names is None else ()
        described = next((topic for topic in topics if topic.name == self.name), None)
        if described is None:
            request = (MetadataRequestTopic(name=self.name),)
            described = next(iter(self._metadata(request).topics), None)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if described is None else described.error_code
        if code or described is None:
            raise BrokerRefused(
                code,
                f"{self.name} cannot be read: {_why(code, self.name)}",
                hint="it exists once a group has committed or joined; reading it needs Read on the topic",
            )
        topic_names = {t.topic_id: t.name for t in topics if t.name and t.topic_id != ZERO_UUID}
        self.topic_names = dict(names) if self.with_names and names is not None else topic_names
        self.leaders = {p.partition_index: p.leader_id for p in described.partitions}

    def _metadata(self, topics: tuple[MetadataRequestTopic, ...] | None) -> MetadataResponse:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = self.transport.request(None, request, min_version=4, timeout_s=self.timeout_s)
        assert isinstance(answer, MetadataResponse)
        if answer.error_code:
            raise BrokerRefused(answer.error_code, f"Metadata: {ErrorCode.name_of(answer.error_code)}")
        self.cluster_id = answer.cluster_id
        return answer

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset the partition still has, and the one after its last."""
        return self.offset_at(partition, EARLIEST), self.offset_at(partition, LATEST)

    def offset_at(self, partition: int, timestamp: int) -> int:
        """Return the offset of the first record with `timestamp` (ms) or later, -1 if there is none."""
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topic = ListOffsetsTopic(name=self.name, partitions=(asked,))
        answer = self._ask(partition, lambda: ListOffsetsRequest(replica_id=-1, topics=(topic,)), None)
        return int(answer.offset)

    def fetch(self, partition: int, offset: int, wait_ms: int = 0) -> tuple[bytes, int]:
        """Return raw batches from the one that holds `offset` on, and the high watermark.

        Waits up to `wait_ms` for a first byte.
        """
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)

        def request() -> FetchRequest:
            topic = FetchTopic(topic=self.name, partitions=(asked,))
            return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, topics=(topic,))

        answer = self._ask(partition, request, _NAMES_UP_TO)
        return bytes(answer.records or b""), int(answer.high_watermark)

    def _ask(self, partition: int, make: Any, max_version: int | None) -> Any:
        """Return what the partition's leader answers of it; a leader that moved is looked up again.

        BrokerRefused if there is none, which is looked up once for all partitions, Unreachable if it does not
        answer: then it is not asked for its other partitions either. Both until `try_again`.
        """
        where = f"{self.name}-{partition}"
        for tries_left in reversed(range(_TRIES)):
            leader = self.leaders.get(partition, -1)
            if leader < 0 and tries_left and not self._looked_again:
                self._looked_again = True
                self.refresh()
                continue
            if leader < 0:
                hint = "start a broker that has a replica of it; kgroup cluster topics shows which do"
                code = ErrorCode.LEADER_NOT_AVAILABLE
                raise BrokerRefused(code, f"{where} cannot be read: no broker leads it", hint=hint)
            if leader in self._mute:
                raise self._mute[leader]
            try:
                answer: Any = self.transport.request(
                    leader, make(), max_version=max_version, timeout_s=self.timeout_s
                )
            except Unreachable as error:
                self._mute[leader] = error
                raise
            topics = answer.responses if hasattr(answer, "responses") else answer.topics
            parts = (part for topic in topics for part in topic.partitions)
            answered = next((part for part in parts if part.partition_index == partition), None)
            said: int = getattr(answer, "error_code", 0)
            if not said:
                said = ErrorCode.UNKNOWN_SERVER_ERROR if answered is None else answered.error_code
            if not said:
                return answered
            # All other errors stay: a missing right, an offset out of range.
            if said not in _MOVED or not tries_left:
                raise BrokerRefused(said, f"{where} cannot be read: {_why(said, self.name)}")
            self.refresh()
        raise AssertionError("unreachable")


def _why(code: int, topic: str) -> str:
    missing = lacking(code, on_topic(READ, topic))
    return ErrorCode.name_of(code) + (f": {missing}" if missing else "")


@dataclass(slots=True)
class LiveLog:
    """One partition of a live topic. Each `batches` reads on from `position` to the current end.

    With `until` it ends at the first batch that reaches it. `position` None begins at the first offset the
    partition still has. Offsets that were compacted away or deleted while reading show as gaps. A failure to
    read on is raised; with `tolerant` it is noted in `failure`, and the others can be read.
    """

    topic: LiveTopic
    partition: int
    position: int | None = None
    end: int = -1
    until: int | None = None
    tolerant: bool = False
    failure: KgroupError | None = None
    bad: list[BadRange] = field(default_factory=list)

    @property
    def source(self) -> str:
        return f"{self.topic.name}-{self.partition}"

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        self.failure = None
        try:
            if self.position is None:
                self.position, self.end = self.topic.bounds(self.partition)
            while True:
                at = self.position
                data, self.end = self.topic.fetch(self.partition, at)
                scanner = Scanner(f"{self.source} from offset {at}")
                if data:
                    # A Fetch begins with the whole batch that holds its offset, and may end inside one.
                    yield data, (h for h in scanner.headers(data, True) if h.last_offset >= at)
                self.bad += [bad for bad in scanner.bad if bad.problem is not Problem.CUT_SHORT]
                self.position = max(at, scanner.last_offset + 1)
                if progress is not None:
                    progress(len(data))
                end = self.end if self.until is None else min(self.until, self.end)
                if self.position >= end or self.position == at:
                    return
        except KgroupError as error:
            if not self.tolerant:
                raise
            self.failure = error
