"""Bytes of other members are anybody's: nothing raises, and what was not understood is told."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.protocol.embedded import connect, schema_registry, streams
from kgroup.protocol.embedded.member import (
    CONNECT,
    KSQLDB,
    SCHEMA_REGISTRY,
    STREAMS,
    Application,
    embedded,
)
from kgroup.protocol.subscription import Assignment, Subscription

from .test_kafkas_bytes import LINES

KINDS = (CONNECT, STREAMS, KSQLDB, SCHEMA_REGISTRY)
WRITTEN = [bytes.fromhex(line["hex"]) for line in LINES] + [
    b'{"version":1,"host":"h","port":8081,"master_eligibility":true,"scheme":"http"}',
    b'{"version":1,"error":0,"master":"m","master_identity":{"version":1,"host":"h","port":8081}}',
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """What was well written, cut, overwritten or prolonged somewhere."""
    data = bytearray(draw(st.sampled_from(WRITTEN)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        data[at : at + 1] = draw(st.binary(max_size=4))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


anything = st.one_of(st.binary(max_size=200), damaged())


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(KINDS), anything, anything, st.booleans())
def test_every_byte_string_has_an_answer(kind: str, metadata: bytes, assignment: bytes, wrap: bool) -> None:
    if wrap and kind in (STREAMS, KSQLDB):
        metadata = Subscription(("t",), metadata).encode()
        assignment = Assignment((), assignment).encode()
    told = embedded(Application(kind), "client", metadata, assignment)
    # What is shown can be printed and is JSON; what is not shown is told, each part once.
    json.dumps(asdict(told), ensure_ascii=False).encode()
    parts = [each.part for each in told.undecoded]
    assert len(parts) == len(set(parts))
    assert all(each.text.startswith(f"{each.part} undecoded, {each.size} byte") for each in told.undecoded)
    if kind == CONNECT and metadata:
        assert (told.connect is None) == ("metadata" in parts)
    if kind == SCHEMA_REGISTRY and assignment:
        assert told.schema_registry is not None
        assert (told.schema_registry.election is None) == ("assignment" in parts)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\3" + b"x" * 20, "metadata undecoded, 22 bytes, version 3: newer than 2"),
        (b"\xff\xff", "metadata undecoded, 2 bytes, version -1: older than 0"),
        (b"\0", "metadata undecoded, 1 byte: too short for a version"),
        (
            b"\0\1\0\5ab",
            "metadata undecoded, 6 bytes, version 1: ConfigState v1: 5 bytes wanted at byte 4, 2 left",
        ),
    ],
)
def test_a_connect_workers_future_and_damage_are_told(data: bytes, said: str) -> None:
    worker, undecoded = connect.worker(data, b"")
    assert worker is None
    assert [each.text for each in undecoded] == [said]


def test_a_streams_threads_future_is_told() -> None:
    future = (12).to_bytes(4, "big") + (12).to_bytes(4, "big") + bytes(30)
    thread, undecoded = streams.thread("app-StreamThread-2-consumer", future, future)
    assert (thread.thread, thread.subscription, thread.assignment) == ("app-StreamThread-2", None, None)
    assert [each.text for each in undecoded] == [
        "metadata undecoded, 38 bytes, version 12: newer than 11",
        "assignment undecoded, 38 bytes, version 12: newer than 11",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"version":2,"host":"h"}', "metadata undecoded, 24 bytes, version 2: newer than 1"),
        (b'{"version":1,"port":"x"}', "metadata undecoded, 24 bytes, version 1: port is no int"),
        (b'{"port":true}', "metadata undecoded, 13 bytes: port is no int"),
        (b"[1]", "metadata undecoded, 3 bytes: no JSON object"),
        # Python 3.14 goes deeper than 20,000
        (b"[" * 500_000, "metadata undecoded, 500000 bytes: no JSON: RecursionError"),
        (b'{"host":"\\ud800"}', "metadata undecoded, 17 bytes: no JSON: UnicodeEncodeError"),
    ],
    ids=["newer", "port of text", "port of truth", "no object", "too deep", "half a pair"],
)
def test_a_registrys_future_and_damage_are_told(data: bytes, said: str) -> None:
    instance, undecoded = schema_registry.instance(data, b"")
    assert instance.identity is None
    assert [each.text for each in undecoded] == [said]


def test_counts_beyond_the_bytes_are_refused_before_anything_is_made() -> None:
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
        thread, undecoded = streams.thread("", None, b"\0\0\0\1" + count + bytes(8))
        assert thread.assignment is None
        assert "items before byte 8, 8 bytes left" in undecoded[0].reason
