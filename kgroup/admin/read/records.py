"""Records from positions on, poll by poll."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from kgroup.admin.read.record_times import fetch_by_leader
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError, ErrorCode, KgroupError
from kgroup.protocol.batches import batches_in


@dataclass(frozen=True, slots=True)
class Chunk:
    """A partition's content from a position on: the offsets of records, and the next position.

    `position` None: the log does not have the position requested.
    """

    offsets: tuple[int, ...]
    position: int | None


class Records:
    """The logs of a cluster, polled for `within_s` at a time, so that no caller waits long for them."""

    def __init__(self, cluster: ClusterView, within_s: float) -> None:
        self._cluster = cluster
        self._within_s = within_s

    def read(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, Chunk | KgroupError]:
        """Return the records from each position on, as much as one answer holds; never raises."""
        try:
            with self._cluster.within(self._within_s):
                topics = self._cluster.topics({partition.topic for partition in positions})
                answers = fetch_by_leader(self._cluster, positions, topics)
        except KgroupError as error:
            return dict.fromkeys(positions, error)
        chunks: dict[TopicPartition, Chunk | KgroupError] = {}
        for partition, answer in answers.items():
            if isinstance(answer, KgroupError):
                chunks[partition] = answer
            elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                chunks[partition] = Chunk((), None)
            else:
                chunks[partition] = _chunk(answer.records or b"", positions[partition])
        return chunks

    def start(
        self, partitions: Sequence[TopicPartition], smallest: bool
    ) -> dict[TopicPartition, int | KgroupError]:
        """Return where each log begins, or where it ends; never raises."""
        try:
            with self._cluster.within(self._within_s):
                asked = dict.fromkeys(partitions, EARLIEST if smallest else LATEST)
                listed = list_offsets(self._cluster, asked)
        except KgroupError as error:
            return dict.fromkeys(partitions, error)
        return {p: at.offset if isinstance(at, ListedOffset) else at for p, at in listed.items()}


def _chunk(data: bytes, position: int) -> Chunk | DecodeError:
    offsets: list[int] = []
    after = position
    try:
        for batch in batches_in(data):
            after = max(after, batch.last_offset + 1)
            if not batch.control:
                offsets += [record.offset for record in batch.records if record.offset >= position]
    except DecodeError as error:
        return error
    return Chunk(tuple(offsets), after)
