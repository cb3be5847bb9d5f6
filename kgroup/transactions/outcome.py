"""What the transaction coordinator's step asks of its host."""

from dataclasses import dataclass, field

from kgroup.domain import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, EndMarker, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.transactions.state import Record


@dataclass(frozen=True, slots=True)
class Markers:
    """The decided end of a transaction, to be written to each of its partitions.

    Once all are written, or gone with their topic, the host calls `markers_written`. Writing a marker twice
    is harmless.
    """

    transactional_id: str
    marker: EndMarker
    partitions: frozenset[TopicPartition]
    version: int


@dataclass(slots=True)
class Outcome:
    """Append `records` as one batch, replay each, write the `markers`, then answer.

    The answer is `code` with the producer's id and epoch, where the request's has room for them. An
    outcome that cannot be appended never happened: the coordinator is reloaded.
    """

    records: list[Record] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
