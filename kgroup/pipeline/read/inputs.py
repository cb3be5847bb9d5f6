"""The input of a run or the data source: segment files, or the live topic of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, StorageError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.sources.chunks import file_chunks
from kgroup.history.sources.layout import AnyFile
from kgroup.history.sources.live import EARLIEST, LATEST, LiveLog, LiveTopic
from kgroup.history.sources.logs import (
    Look,
    OffsetsLog,
    SegmentLog,
    logs_of,
    segments_of,
    state_logs_of,
    topic_names_near,
)
from kgroup.history.sources.splits import Split, SplitReader, plan_splits
from kgroup.pipeline.read.places import resumed
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions

Places: TypeAlias = Mapping[int, tuple[str, int]]
"""By partition, the segment and the byte in it where the batch begins that was read last."""
NO_PLACES: Places = {}
RECORD_BYTES = 100
"""Approximate size of a commit in the log: that many bytes of a live partition count as one offset."""


@dataclass(frozen=True, slots=True)
class Since:
    """Where a first read begins: at the first batch that reaches `offset`, or a time (ms)."""

    offset: int | None = None
    time_ms: int | None = None


class StateLog(Protocol):
    """A partition of `__share_group_state`, opened by the task that reads it."""

    @property
    def partition(self) -> int: ...

    def opened(self) -> AbstractContextManager[OffsetsLog]:
        """Return its log, as a context manager. KgroupError if it cannot be reached."""
        ...


@dataclass(frozen=True, slots=True)
class StateLogs:
    """The partitions of `__share_group_state` that may hold anything new, and why others cannot be read."""

    logs: Sequence[StateLog]
    unread: Sequence[tuple[int, KgroupError]] = ()


@runtime_checkable
class Input(Protocol):
    """Partitions of `__consumer_offsets` that can be cut into splits."""

    @property
    def labels(self) -> list[str]:
        """The sources, for the manifest."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on copies of partitions that add nothing."""
        ...

    def looked_at(self) -> Input:
        """Return the input as it is found now, for all requests of one run."""
        ...

    def parts(self) -> int:
        """Return the number of partitions."""
        ...

    def plan(
        self,
        split_bytes: int,
        after: Mapping[int, int],
        whole: frozenset[int] = frozenset(),
        places: Places = NO_PLACES,
    ) -> list[Split]:
        """Return the splits with what follows `after` (the last log offset read, by partition).

        `places` are where the last batches that were read begin.
        """
        ...

    def state_logs(self, after: Mapping[int, int]) -> StateLogs | None:
        """Return the partitions of `__share_group_state`; None if there is no such topic.

        `after` are the last offsets read, which may be read again. KgroupError if it cannot be read.
        """
        ...

    def topic_names(self) -> dict[bytes, str]:
        """Return the names of topic ids, as far as they are known outside the log."""
        ...

    def cluster_id(self) -> str | None:
        """Return the id of the topic's cluster; None if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Segments:
    """Segment files, and folders to search, by path or URL; StorageError if there is nothing to read.

    `found` is the result of a scan. A scan reads copies of a partition to check that they are of one cluster,
    so a run scans once.
    """

    paths: tuple[Path | Location, ...]
    since: Since | None = None
    options: StorageOptions = StorageOptions()
    found: Look | None = None

    @classmethod
    def of(
        cls,
        paths: Sequence[Path | Location],
        since: Since | None = None,
        options: StorageOptions | None = None,
    ) -> Segments:
        places = [path.local if isinstance(path, Location) and path.is_local else path for path in paths]
        # Executors have working directories of their own.
        real = tuple(path.resolve() if isinstance(path, Path) else path for path in places)
        return cls(real, since, options or StorageOptions())

    @property
    def labels(self) -> list[str]:
        return [str(path) for path in self.paths]

    def looked_at(self) -> Segments:
        return replace(self, found=self._look())

    def _look(self) -> Look:
        return self.found or segments_of(self.paths, self.options)

    @property
    def notes(self) -> tuple[str, ...]:
        """Copies of partitions that add nothing, and damage that other copies make up for."""
        return self._look().notes

    @property
    def logs(self) -> list[SegmentLog]:
        """The partitions by number; ConfigError for segments of several clusters."""
        return logs_of(self._look())

    def parts(self) -> int:
        return len(self.logs)

    def plan(
        self,
        split_bytes: int,
        after: Mapping[int, int],
        whole: frozenset[int] = frozenset(),
        places: Places = NO_PLACES,
    ) -> list[Split]:
        logs = self.logs
        begun = dict(after)
        if self.since is not None:
            new = [log for log in logs if log.partition not in after]
            begun |= {log.partition: _start(log, self.since) - 1 for log in new}
        return resumed(plan_splits(logs, split_bytes, begun, whole), places)

    def state_logs(self, after: Mapping[int, int]) -> StateLogs | None:
        logs = state_logs_of(self._look())
        return StateLogs([StateSegments(log.partition, log) for log in logs]) if logs else None

    def topic_names(self) -> dict[bytes, str]:
        return topic_names_near(self.paths, self._look().neighbours)

    def cluster_id(self) -> str | None:
        return self._look().cluster


@dataclass(frozen=True, slots=True)
class StateSegments:
    """The segments of a partition of `__share_group_state`."""

    partition: int
    log: SegmentLog

    def opened(self) -> AbstractContextManager[OffsetsLog]:
        return nullcontext(self.log)


def _start(log: SegmentLog, since: Since) -> int:
    """Return the offset to begin at; after the last one if nothing is that late."""
    if since.offset is not None:
        return since.offset
    time_ms = since.time_ms or 0
    if log.stretches:
        merged = SegmentLog(log.partition, log.files, check_crc=False, stretches=log.stretches)
        return _first_since((header for _, headers in merged.batches() for header in headers), time_ms)
    files = list(log.files)
    # Brokers stamp the records of this topic as they append: batches are in time order.
    while len(files) > 1 and (head := next(_headers(files[1]), None)) and head.base_timestamp_ms < time_ms:
        del files[0]
    return _first_since((header for file in files for header in _headers(file)), time_ms)


def _first_since(headers: Iterable[BatchHeader], time_ms: int) -> int:
    """Return the offset of the first batch that is not earlier; after the last one if there is none."""
    last = -1
    for header in headers:
        if header.max_timestamp_ms >= time_ms:
            return header.base_offset
        last = header.last_offset
    return last + 1


def _headers(path: AnyFile) -> Iterator[BatchHeader]:
    try:
        for _, headers in file_chunks(path, Scanner(str(path), check_crc=False)):
            yield from headers
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """The live topic; every task reads its share from the brokers by itself.

    By Fetch as in process, not by a consumer library, which would hide transaction markers and batch bounds.
    """

    connection: ConnectionSettings
    since: Since | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def looked_at(self) -> LiveCluster:
        return self

    @property
    def labels(self) -> list[str]:
        return [",".join(f"{host}:{port}" for host, port in self.connection.bootstrap)]

    def parts(self) -> int:
        with live_topic(self.connection) as topic:
            return len(topic.partitions)

    def plan(
        self,
        split_bytes: int,
        after: Mapping[int, int],
        whole: frozenset[int] = frozenset(),
        places: Places = NO_PLACES,
    ) -> list[Split]:
        splits: list[Split] = []
        with live_topic(self.connection) as topic:
            for part in topic.partitions:
                first, end = self.bounds(topic, part)
                if part in after:
                    first = after[part] + 1
                if first > end:
                    text = f"partition {part} of the topic ends at offset {end}, and {first - 1} was read"
                    hint = "it was created again, or has lost records: read it into a new folder"
                    raise StorageError(text, hint)
                step = end if part in whole else max(1, split_bytes // RECORD_BYTES)
                splits += self.shares(part, first, end, step)
        return splits

    def bounds(self, topic: LiveTopic, part: int) -> tuple[int, int]:
        """Return where a first read of a partition begins, and the offset after its last."""
        first, end = topic.bounds(part)
        if self.since is None:
            return first, end
        if self.since.offset is not None:
            return min(max(first, self.since.offset), end), end
        offset = topic.offset_at(part, self.since.time_ms or 0)
        return (end if offset < 0 else offset), end

    def shares(self, part: int, first: int, end: int, step: int) -> list[Split]:
        """Return the offsets from `first` to before `end`, in splits of `step` offsets."""
        starts = range(first, end, max(1, step))
        ends = [min(start + step, end) for start in starts]
        return [
            LiveSplit(part, number, (), first - 1, connection=self.connection, start=start, end=stop)
            for number, (start, stop) in enumerate(zip(starts, ends, strict=True))
        ]

    def state_logs(self, after: Mapping[int, int]) -> StateLogs | None:
        new, unread = list[StateLog](), list[tuple[int, KgroupError]]()
        try:
            with live_topic(self.connection, name=SHARE_STATE_TOPIC) as topic:
                for part in topic.partitions:
                    last = after.get(part, -1)
                    try:
                        if topic.offset_at(part, LATEST) > last + 1:
                            new.append(LiveState(part, self.connection, last))
                    except KgroupError as error:
                        unread.append((part, error))
        except BrokerRefused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
        return StateLogs(new, unread)

    def topic_names(self) -> dict[bytes, str]:
        with live_topic(self.connection, with_names=True) as topic:
            return topic.topic_names

    def cluster_id(self) -> str | None:
        with live_topic(self.connection) as topic:
            return topic.cluster_id


@dataclass(frozen=True, slots=True)
class LiveState:
    """A partition of the live `__share_group_state`, read after `last_offset`."""

    partition: int
    connection: ConnectionSettings
    last_offset: int

    @contextmanager
    def opened(self) -> Iterator[OffsetsLog]:
        with live_topic(self.connection, name=SHARE_STATE_TOPIC) as topic:
            # Brokers may have deleted what comes next.
            first = topic.offset_at(self.partition, EARLIEST)
            yield LiveLog(topic, self.partition, max(self.last_offset + 1, first))


@contextmanager
def live_topic(
    connection: ConnectionSettings, with_names: bool = False, name: str = OFFSETS_TOPIC
) -> Iterator[LiveTopic]:
    """Return a coordinator's topic of a cluster; BrokerRefused when it is missing or not readable."""
    with SocketTransport(connection) as transport:
        yield LiveTopic(transport, connection.request_timeout_s, with_names=with_names, name=name)


@dataclass(frozen=True, slots=True)
class LiveSplit(Split):
    """The batches of a live partition that begin at or after `start`, and before `end` (log offsets)."""

    connection: ConnectionSettings | None = None
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        return (self.end - self.start) * RECORD_BYTES

    @property
    def source(self) -> str:
        return f"{OFFSETS_TOPIC}-{self.part}"

    def reader(self) -> SplitReader:
        return LiveReader(self)


@dataclass(slots=True)
class LiveReader(SplitReader):
    """Reads its share of a live partition from the leader, in the chunks that Fetch returns."""

    bytes_read: int = 0

    def chunks(self) -> Iterator[tuple[bytes, list[BatchHeader]]]:
        split = self.split
        assert isinstance(split, LiveSplit) and split.connection is not None
        self.source = split.source
        # A batch belongs to the share it begins in; the first share also has the one that it begins inside.
        first = split.start if split.number else -1
        with live_topic(split.connection) as topic:
            log = LiveLog(topic, split.part, split.start, until=split.end)
            for data, headers in log.batches():
                fresh = [h for h in headers if first <= h.base_offset < split.end]
                if fresh:
                    self.bytes_read += fresh[-1].end - fresh[0].position
                    self.next_offset = fresh[-1].last_offset + 1
                    yield data, fresh
        self.bad += log.bad


def connection_of(options: Mapping[str, str]) -> ConnectionSettings:
    """Return a cluster's connection settings from confluent-kafka's names; ConfigError for a bad one."""
    return ConnectionSettings(
        bootstrap=parse_bootstrap(options.get("bootstrap.servers", "")),
        security=security_of(Given(options)),
        client_id=options.get("client.id") or "kgroup",
        request_timeout_s=float(options.get("request.timeout.ms", 30_000)) / 1000,
    )
