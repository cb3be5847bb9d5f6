"""Records and messages against bytes that Kafka's own classes wrote.

kafka_golden.jsonl was made once, by hand, with the jars of Kafka 4.3.1 and, of share groups, 4.4.0: for each
row the class's generated JsonConverter read `fields`, and MessageUtil wrote `bytes`: a key with its type in
front, a value or a consumer-protocol payload with its version, the body of a request or response with
nothing.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kgroup.domain import TopicPartition, uuid_bytes
from kgroup.protocol import (
    group_records,
    share_records,
    share_state_records,
    streams_records,
    subscription,
    transaction_records,
)
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.group_records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    record_classes,
)
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.registry import KAFKA_APIS, request_class, response_class
from kgroup.protocol.shapes import Shape, slots_of
from kgroup.protocol.subscription import Assignment, Subscription

ROWS = [json.loads(line) for line in (Path(__file__).parent / "kafka_golden.jsonl").read_text().splitlines()]
PAIRS = (*record_classes().values(), *share_state_records.PAIRS.values())
KEYS = {value.__name__: key for key, value in PAIRS}


def class_of(name: str) -> type[Message]:
    for module in (
        group_records,
        share_records,
        share_state_records,
        streams_records,
        transaction_records,
        subscription,
    ):
        if hasattr(module, name):
            found: type[Message] = getattr(module, name)
            return found
    classes = (of(key) for key in KAFKA_APIS for of in (request_class, response_class))
    return next(cls for cls in classes if cls.__name__ == name)


def value_of(shape: Shape, node: Any) -> Any:
    if node is None:
        return None
    if shape.kind == "struct":
        assert shape.struct is not None
        return message_of(shape.struct, node)
    if shape.kind == "array":
        assert shape.item is not None
        return tuple(value_of(shape.item, one) for one in node)
    if shape.kind == "bytes":
        return base64.b64decode(node)
    return uuid_bytes(node) if shape.kind == "uuid" else node


def message_of(cls: type[Struct], node: dict[str, Any]) -> Any:
    """The message behind Kafka's JSON form; a field that is not in it has the value of an absent field."""
    given = {}
    for slot in slots_of(cls):
        head, *rest = slot.name.split("_")
        name = head + "".join(part.capitalize() for part in rest)
        given[slot.name] = value_of(slot.shape, node[name]) if name in node else slot.default
    return cls(**given)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['class']}-v{row['version']}")
def test_bytes_are_those_of_kafka(row: dict[str, Any]) -> None:
    """SM-09 to SM-14, SM-16, SM-19, CP-14, CP-18, CP-48 to CP-54 (shipped forms), AE-18: golden bytes."""
    cls, version, data = class_of(row["class"]), row["version"], bytes.fromhex(row["bytes"])
    ours = message_of(cls, row["fields"])
    if isinstance(ours, RecordKey):
        assert encode_key(ours) == data
        module = sys.modules[cls.__module__]
        decode = getattr(module, "decode_key", decode_key)
        assert decode(data) == ours
    elif isinstance(ours, RecordValue):
        assert encode_value(ours, version) == data
        key = KEYS.get(row["class"])
        if key is None:
            assert transaction_records.decode_value(data) == ours
        else:
            decode = getattr(sys.modules[cls.__module__], "decode_value", decode_value)
            assert decode(object.__new__(key), data) == ours
    else:
        body = data[2:] if row["class"].startswith("ConsumerProtocol") else data
        assert ours.encode(version) == body
        assert cls.decode(body, version) == ours


def test_every_record_class_has_a_row_for_each_version_it_can_be_read_in() -> None:
    seen = {(row["class"], row["version"]) for row in ROWS}
    classes = [cls for pair in PAIRS for cls in pair]
    assert {(cls.__name__, version) for cls in classes for version in cls.VERSIONS} <= seen


@pytest.mark.parametrize("version", range(4))
def test_consumer_protocol_payloads_are_those_of_kafka(version: int) -> None:
    rows = {row["class"]: bytes.fromhex(row["bytes"]) for row in ROWS if row["version"] == version}
    owned = (TopicPartition("a", 0), TopicPartition("a", 2)) if version >= 1 else ()
    wants = Subscription(("a", "b"), b"\7", owned, 12 if version >= 2 else -1, "r" if version >= 3 else None)
    gets = Assignment((TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)))
    for ours, name in ((wants, "ConsumerProtocolSubscription"), (gets, "ConsumerProtocolAssignment")):
        assert ours.encode(version) == rows[name]
        assert type(ours).decode(rows[name]) == ours
