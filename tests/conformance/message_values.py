"""Hypothesis strategies for any message or record, read off the shapes its codec is compiled from."""

import struct as structs
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.group_records import record_classes
from kgroup.protocol.registry import KAFKA_APIS, PRIVATE_APIS, request_class, response_class
from kgroup.protocol.releases import Release
from kgroup.protocol.shapes import Shape, Slot, slots_of
from kgroup.protocol.share_state_records import PAIRS as SHARE_STATE_PAIRS
from kgroup.protocol.transaction_records import TransactionLogKey, TransactionLogValue

PRIVATE_TAGS = 10000
IN_KIO = Release(4, 3)
"""Of which release kio has the messages; later ones are held to Kafka's JSON (`tests/kafka_release`)."""
NEWEST_IN_KIO = ErrorCode.SHARE_SESSION_LIMIT_REACHED
KIO_TIMES = {"log_append_time_ms", "transaction_start_time_ms", "session_lifetime_ms", "retention_time_ms"}

TEXT = st.one_of(st.text("ab-é漢😀", max_size=5), st.sampled_from(["", "x" * 126, "x" * 127, "é" * 70]))
BINARY = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"\xff" * 127, bytes(200)]))
UUIDS = st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16))


def profile(examples: int) -> settings:
    """The same examples on every run, few of them: there are hundreds of codecs."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Case:
    """One message class in one version."""

    cls: type[Message]
    version: int

    def __str__(self) -> str:
        return f"{self.cls.__name__}-v{self.version}"


def kio_cases() -> list[Case]:
    """Every API of Kafka's, both directions, every version that kio has."""
    return [
        Case(of(key), version)
        for key in KAFKA_APIS
        for of in (request_class, response_class)
        for version in IN_KIO.versions(key)
    ]


def all_cases() -> list[Case]:
    """Every API, the private ones too, both directions, every version."""
    classes = [of(key) for key in KAFKA_APIS + PRIVATE_APIS for of in (request_class, response_class)]
    return [Case(cls, version) for cls in classes for version in cls.VERSIONS]


@cache
def values(
    cls: type[Struct], version: int, kio: bool = False, flexible: bool = False
) -> st.SearchStrategy[Any]:
    """Instances of `cls`: the fields of `version` vary, the others keep their defaults.

    With `kio` only what kio can hold too: no private tags, and times small enough for its dates and floats.
    """
    if issubclass(cls, Message):
        flexible = version >= cls.FLEXIBLE
    given = {}
    for slot in slots_of(cls):
        absent = not slot.since <= version <= slot.until
        if absent or (slot.tag is not None and (not flexible or (slot.tag >= PRIVATE_TAGS and kio))):
            given[slot.name] = st.just(slot.default)
        else:
            given[slot.name] = _field(slot, version, kio, flexible)
    return st.builds(cls, **given)


def _field(slot: Slot, version: int, kio: bool, flexible: bool) -> st.SearchStrategy[Any]:
    made = _of(slot.name, slot.shape, version, kio, flexible)
    if kio and slot.name in KIO_TIMES:
        made = st.integers(-1, 1 << 40)
    if slot.shape.nullable and version >= slot.nullable_since:
        made = st.none() | made
    return made | st.just(slot.default) if slot.tag is not None else made


def _of(name: str, shape: Shape, version: int, kio: bool, flexible: bool) -> st.SearchStrategy[Any]:
    if shape.kind == "fixed":
        return _number(name, shape.code)
    if shape.kind == "struct":
        assert shape.struct is not None
        return values(shape.struct, version, kio, flexible)
    if shape.kind == "array":
        assert shape.item is not None
        item = _of(name, shape.item, version, kio, flexible)
        return st.lists(item, max_size=2).map(tuple)
    return {"string": TEXT, "bytes": BINARY, "uuid": UUIDS}[shape.kind]


def _number(name: str, code: str) -> st.SearchStrategy[Any]:
    if code == "?":
        return st.booleans()
    if name.endswith("error_code"):
        return st.sampled_from([int(code) for code in ErrorCode if code <= NEWEST_IN_KIO])
    if code == "d":
        return st.floats(allow_nan=False)
    bits = 8 * structs.calcsize(">" + code)
    low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


def record_cases() -> list[Case]:
    """Every key and value of the coordinators' topics in every version that can be read."""
    classes = [cls for pair in (*record_classes().values(), *SHARE_STATE_PAIRS.values()) for cls in pair]
    classes += [TransactionLogKey, TransactionLogValue]
    return [Case(cls, version) for cls in classes for version in cls.VERSIONS]
