"""What differs between Kafka's answer and ours, as small values with a place and both sides."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgroup.coordinator.outcome import Record
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import UnknownKey, decode_key, decode_value, encode_key, encode_value

ABSENT = "(absent)"
Pair = tuple[str, str | None]
"""A record's key and value in hex; None is a tombstone."""
Named = tuple[str, str, str | None]
"""A record's type, and its key and value as text that is the same for the same content."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """One place where the two disagree, after operation `step` (an index into the program's trace).

    `kind` is reply, records, state, timer, assignor, crash or reload; `operation` what was being done.
    """

    kind: str
    operation: str
    where: str
    kafka: Any
    ours: Any
    step: int = -1

    @property
    def signature(self) -> str:
        """The same for differences that are likely to have one cause."""
        where = re.sub(r"[\w-]{20,}|\b\d+\b|\bc\d-\S+|\bi\d-\S+", "#", self.where)
        sides = ""
        if where.endswith("error_code"):
            sides = f" {self.kafka}, {self.ours}"
        elif where.endswith("error_message"):
            sides = " ".join(f" {str(side)[:12]}" for side in (self.kafka, self.ours))
        return f"{self.kind} of {self.operation}: {where}{sides}"

    def __str__(self) -> str:
        return f"{self.kind} of {self.operation}, {self.where}: Kafka {self.kafka!r}, ours {self.ours!r}"


def leaves(kafka: Any, ours: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two nested values differ, each with both sides."""
    if kafka == ours and type(kafka) is type(ours):
        return
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in sorted({*kafka, *ours}, key=str):
            place = f"{where}.{key}" if where else str(key)
            yield from leaves(kafka.get(key, ABSENT), ours.get(key, ABSENT), place)
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for index, (one, other) in enumerate(zip(kafka, ours, strict=True)):
            yield from leaves(one, other, f"{where}[{index}]")
    elif kafka != ours:
        yield where, kafka, ours


def plain(value: Any) -> Any:
    """A message or record as dicts, lists and text; the order of lists is kept."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value if isinstance(value, bool) or not isinstance(value, int) else int(value)


def unordered(value: Any) -> Any:
    """The same with every list sorted: Kafka takes many of them from hash maps."""
    if isinstance(value, dict):
        return {key: unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((unordered(item) for item in value), key=repr)
    return value


def of_reply(kafka: str, ours: Message, version: int) -> Iterator[tuple[str, Any, Any]]:
    """Differences of two replies, as a client of that version reads them."""
    encoded = ours.encode(version)
    if encoded.hex() == kafka:
        return
    theirs = type(ours).decode(bytes.fromhex(kafka), version)
    mine = type(ours).decode(encoded, version)
    yield from leaves(unordered(plain(theirs)), unordered(plain(mine)))


def encoded(records: list[Record]) -> list[Pair]:
    """The records' bytes."""
    pairs = []
    for record in records:
        value = encode_value(record.value)
        pairs.append((encode_key(record.key).hex(), None if value is None else value.hex()))
    return pairs


def decoded(pairs: list[Pair]) -> list[Record]:
    """The records that these bytes are."""
    records = []
    for key_hex, value_hex in pairs:
        key = decode_key(bytes.fromhex(key_hex))
        if isinstance(key, UnknownKey):
            raise ValueError(f"a record of type {key_hex[:4]}, which no group of ours has")
        value = decode_value(key, None if value_hex is None else bytes.fromhex(value_hex))
        records.append(Record(key, value))
    return records


def of_records(kafka: list[Pair], ours: list[Pair]) -> Iterator[tuple[str, Any, Any]]:
    """Differences of two batches. Of groups, and within a run of one type, Kafka's order is a hash map's."""
    if kafka == ours:
        return
    left, right = _by_group(kafka), _by_group(ours)
    for group in {**left, **right}:
        yield from _of_group(left.get(group, []), right.get(group, []))


def _by_group(pairs: list[Pair]) -> dict[str, list[Named]]:
    groups: dict[str, list[Named]] = {}
    for pair in pairs:
        record = _named(pair)
        key = json.loads(record[1])
        groups.setdefault(key.get("group_id", key.get("group", "")), []).append(record)
    return groups


def _of_group(theirs: list[Named], mine: list[Named]) -> Iterator[tuple[str, Any, Any]]:
    if _runs(theirs) == _runs(mine) or _same_but_for_the_order_of_members(theirs, mine):
        return
    only_kafka, only_ours = _beyond(theirs, mine), _beyond(mine, theirs)
    if not only_kafka and not only_ours:
        yield "order", [_brief(record) for record in theirs], [_brief(record) for record in mine]
        return
    for key in dict.fromkeys(record[:2] for record in (*only_kafka, *only_ours)):
        left = [record[2] for record in only_kafka if record[:2] == key]
        right = [record[2] for record in only_ours if record[:2] == key]
        if len(left) == len(right) == 1 and left[0] is not None and right[0] is not None:
            yield from leaves(json.loads(left[0]), json.loads(right[0]), key[0])
        else:
            name = f"{key[0]}{' tombstone' if None in (left or right) else ''}"
            yield name, left and [key[1], left] or ABSENT, right and [key[1], right] or ABSENT


def _named(pair: Pair) -> Named:
    key = decode_key(bytes.fromhex(pair[0]))
    if isinstance(key, UnknownKey):
        raise ValueError(f"a record of type {pair[0][:4]}, which no group of ours has")
    value = decode_value(key, None if pair[1] is None else bytes.fromhex(pair[1]))
    text = None if value is None else json.dumps(unordered(plain(value)), sort_keys=True)
    return type(key).__name__.removesuffix("Key"), json.dumps(plain(key), sort_keys=True), text


def _runs(records: list[Named]) -> list[list[Named]]:
    runs: list[list[Named]] = []
    for record in records:
        if runs and (runs[-1][-1][0], runs[-1][-1][2] is None) == (record[0], record[2] is None):
            runs[-1].append(record)
        else:
            runs.append([record])
    return [sorted(run, key=repr) for run in runs]


def _same_but_for_the_order_of_members(these: list[Named], those: list[Named]) -> bool:
    """Whether the kinds follow each other alike, and so do the records of each member."""
    if [_brief(record) for record in these] != [_brief(record) for record in those]:
        return False
    return _by_member(these) == _by_member(those)


def _by_member(records: list[Named]) -> dict[str | None, list[list[Named]]]:
    """Each member's records in their order, and the others in the order of their runs."""
    members: dict[str | None, list[Named]] = {}
    for record in records:
        members.setdefault(json.loads(record[1]).get("member_id"), []).append(record)
    return {member_id: _runs(own) for member_id, own in members.items()}


def _beyond(these: list[Named], those: list[Named]) -> list[Named]:
    return list((Counter(these) - Counter(those)).elements())


def _brief(record: Named) -> str:
    return f"{record[0]}{'' if record[2] is not None else ' tombstone'}"
