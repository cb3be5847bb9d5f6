"""Keys and values of `__transaction_state`: one record type, the state of a transactional id.

Encoded like the records of `__consumer_offsets`: type or version (int16), then the fields.
"""

from typing import Annotated

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Struct
from kgroup.protocol.record_kinds import RecordKey, RecordValue, leading_int16
from kgroup.protocol.types import Int8, Int16, Int32, Int64, Since, String, Tagged

STATES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
"""Names of `TransactionLogValue.transaction_status`."""


class TransactionLogKey(RecordKey, type=0):
    """A transactional id."""

    transactional_id: String


class PartitionsSchema(Struct):
    """Partitions of one topic that take part in the transaction."""

    topic: String
    partition_ids: tuple[Int32, ...] = ()


class TransactionLogValue(RecordValue, versions=range(2), flexible=1, written=1):
    """The state of a transactional id; ids and epochs are -1 when unset, times in ms.

    - 1: flexible; previous and next producer id and the client's transaction version as tags (KIP-890)
    """

    producer_id: Int64
    previous_producer_id: Annotated[Int64, Since(1), Tagged(0)] = -1
    next_producer_id: Annotated[Int64, Since(1), Tagged(1)] = -1
    producer_epoch: Int16
    next_producer_epoch: Annotated[Int16, Since(1), Tagged(3)] = -1
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[PartitionsSchema, ...] | None = ()
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, Since(1), Tagged(2)] = 0


def decode_key(data: bytes) -> TransactionLogKey:
    """Return the key in `data`; raises only DecodeError, also for a type that is not 0."""
    kind = leading_int16(data, "key")
    if kind != TransactionLogKey.TYPE:
        raise DecodeError(f"record key: no transaction record has type {kind}")
    return TransactionLogKey.decode_prefix(data, 2, 0)[0]


def decode_value(data: bytes | None) -> TransactionLogValue | None:
    """Return the value in `data`, None for a tombstone; raises only DecodeError."""
    if data is None:
        return None
    return TransactionLogValue.decode_prefix(data, 2, leading_int16(data, "value"))[0]
