"""Every record of a log, decoded one by one: for people, and to compare with Kafka's own tool."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC, ZERO_UUID, uuid_text
from kgroup.errors import DecodeError
from kgroup.history.decode.records import group_of, raw_records, type_name
from kgroup.history.decode.scan import CONTROL
from kgroup.history.log_items import RawRecord
from kgroup.history.sources.logs import OffsetsLog
from kgroup.protocol import share_state_records
from kgroup.protocol.codec import Struct
from kgroup.protocol.group_records import UnknownKey, decode_key, decode_value
from kgroup.protocol.subscription import Assignment, Subscription

Row: TypeAlias = dict[str, Any]
"""The fields of a record, by their names in JSON."""


def raw_rows(
    log: OffsetsLog,
    names: Iterable[str] | None = None,
    wanted: Callable[[str], bool] | None = None,
    topic_names: Mapping[bytes, str] | None = None,
    topic: str = OFFSETS_TOPIC,
) -> Iterator[Row]:
    """Yield each record of the chosen groups as plain values for JSON, and every marker of a transaction.

    `type` is -1 for control records; `error` says why a key or value could not be decoded. The log is one of
    `topic`, which may be `__share_group_state`.
    """
    exact = None if names is None else frozenset(names)
    for chunk, headers in log.batches():
        for header in headers:
            control = bool(header.attributes & CONTROL)
            try:
                for record in raw_records(chunk, header):
                    # A marker names no group, but shows whether a group's commits counted.
                    group = None if control or record.key is None else group_of(record.key)
                    if not control and exact is not None and group not in exact:
                        continue
                    if not control and wanted is not None and not wanted(group or ""):
                        continue
                    yield raw_row(record, log.partition, control, topic_names or {}, topic)
            except DecodeError as error:
                first = RawRecord(header.base_offset, header.base_timestamp_ms, None, None, -1, -1)
                yield {
                    **_place(first, log.partition, topic),
                    **_typed(-1, "unreadable"),
                    "error": error.message,
                }


def raw_row(
    record: RawRecord,
    partition: int,
    control: bool,
    topic_names: Mapping[bytes, str],
    topic: str = OFFSETS_TOPIC,
) -> Row:
    """Return one record as plain values."""
    position = _place(record, partition, topic)
    key, value = record.key or b"", record.value
    if control:
        kind = int.from_bytes(key[2:4], "big") if len(key) >= 4 else -1
        ends = {0: "abort", 1: "commit"}.get(kind, f"control type {kind}")
        return {**position, **_typed(-1, "EndTransactionMarker"), "key": {"marker": ends}}
    number = int.from_bytes(key[:2], "big", signed=True) if len(key) >= 2 else -1
    shared = topic == SHARE_STATE_TOPIC
    name = share_state_records.type_name(number) if shared else type_name(number)
    row = {**position, **_typed(number, name), "group_id": group_of(key)}
    try:
        if shared:
            decoded_key = share_state_records.decode_key(key)
            row["key"] = plain(decoded_key, topic_names)
            row["value_version"] = int.from_bytes(value[:2], "big") if value else None
            return {**row, "value": plain(share_state_records.decode_value(decoded_key, value), topic_names)}
        decoded = decode_key(key)
        if isinstance(decoded, UnknownKey):
            shown = None if value is None else {"hex": value.hex()}
            return {**row, "key": {"hex": key.hex()}, "value": shown}
        row["key"] = plain(decoded, topic_names)
        row["value_version"] = int.from_bytes(value[:2], "big") if value else None
        row["value"] = plain(decode_value(decoded, value), topic_names)
    except DecodeError as error:
        row |= {"error": error.message, "value": None if value is None else {"hex": value.hex()}}
    return row


def _place(record: RawRecord, partition: int, topic: str) -> Row:
    return {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "batch": record.batch,
        "timestamp_ms": record.timestamp_ms,
        "producer_id": record.producer_id,
    }


def _typed(number: int, name: str) -> Row:
    empty = {"group_id": None, "key": None, "value_version": None, "value": None}
    return {"type": number, "type_name": name, **empty}


def plain(value: object, topic_names: Mapping[bytes, str]) -> object:
    """Return a decoded key or value as dicts, lists and scalars; topic ids are accompanied by their names."""
    if isinstance(value, Struct):
        out: Row = {}
        for field in fields(value):
            name, content = field.name, getattr(value, field.name)
            if name == "topic_id":
                out[name] = None if content == ZERO_UUID else uuid_text(content)
                if content in topic_names:
                    out["topic"] = topic_names[content]
            elif isinstance(content, bytes):
                out[name] = _payload(name, content)
            else:
                out[name] = plain(content, topic_names)
        return out
    if isinstance(value, tuple):
        return [plain(item, topic_names) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def _payload(name: str, data: bytes) -> object:
    """Return a consumer's payload in a group's record, decoded if it is the consumer protocol's; else hex."""
    try:
        if name in ("subscription", "metadata"):
            subscription = Subscription.decode(data)
            owned = [str(partition) for partition in subscription.owned]
            topics, generation = list(subscription.topics), subscription.generation
            return {"topics": topics, "owned": owned, "generation": generation, "rack": subscription.rack}
        if name == "assignment":
            given = Assignment.decode(data)
            places = [str(partition) for partition in given.partitions]
            return {"partitions": places, "user_data": (given.user_data or b"").hex()}
    except DecodeError:  # the bytes of Connect's workers, or of an assignor's own protocol
        pass
    return {"hex": data.hex()} if data else ""
