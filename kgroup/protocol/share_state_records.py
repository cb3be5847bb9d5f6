"""Keys and values of `__share_group_state`: what each share group has delivered of each partition (KIP-932).

Encoded like the records of `__consumer_offsets`: type or version (int16), then the fields; the types of the
two topics overlap. An update belongs to the snapshot of the same epoch before it; a tombstone of a snapshot
deletes the state.
"""

from typing import Annotated, TypeAlias

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Struct
from kgroup.protocol.record_kinds import RecordKey, RecordValue, leading_int16
from kgroup.protocol.types import Int8, Int16, Int32, Int64, String, Tagged, Uuid

DELIVERY_STATES = {0: "Available", 2: "Acknowledged", 3: "Archiving", 4: "Archived"}
"""Names of `StateBatch.delivery_state`; 1, acquired, is never stored. Archiving leads to the dead letters."""


class ShareSnapshotKey(RecordKey, type=0):
    """A partition as one share group reads it: all of its state."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class StateBatch(Struct):
    """Neighbouring records in one delivery state; `last_offset` is the last of them."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    delivery_count: Int16 = 0


class ShareSnapshotValue(RecordValue, versions=range(1), flexible=0):
    """All of the state; a start offset of -1 is not yet set, a count of -1 not known. Times in ms."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tagged(0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...] = ()


class ShareUpdateKey(RecordKey, type=1):
    """A partition as one share group reads it: what has changed since the snapshot."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(RecordValue, versions=range(1), flexible=0):
    """What has changed; a start offset of -1 has not, a count of -1 is not known."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tagged(0)] = -1
    state_batches: tuple[StateBatch, ...] = ()


StateKey: TypeAlias = ShareSnapshotKey | ShareUpdateKey
StateValue: TypeAlias = ShareSnapshotValue | ShareUpdateValue

PAIRS: dict[int, tuple[type[StateKey], type[StateValue]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""Each key with its value, by type."""


def type_name(number: int) -> str:
    """Return the record type's name in Kafka, for types of tomorrow too."""
    return PAIRS[number][0].__name__.removesuffix("Key") if number in PAIRS else f"Type{number}"


def decode_key(data: bytes) -> StateKey:
    """Return the key in `data`; raises only DecodeError, also for a type of tomorrow."""
    kind = leading_int16(data, "key")
    if kind not in PAIRS:
        raise DecodeError(f"record key: no record of share groups' state has type {kind}")
    return PAIRS[kind][0].decode_prefix(data, 2, 0)[0]


def decode_value(key: StateKey, data: bytes | None) -> StateValue | None:
    """Return the value that goes with `key`, None for a tombstone; raises only DecodeError."""
    if data is None:
        return None
    return PAIRS[key.TYPE][1].decode_prefix(data, 2, leading_int16(data, "value"))[0]
