"""Bytes from anywhere either decode or raise DecodeError, and what decodes encodes again."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.broker.routes import NotServed, Routes
from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message
from kgroup.protocol.frame import FrameBuffer, frame
from kgroup.protocol.group_records import UnknownKey, decode_key, decode_value, encode_key, encode_value
from kgroup.protocol.headers import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kgroup.protocol.subscription import Assignment, Subscription
from kgroup.protocol.transaction_records import decode_key as decode_transaction_key
from kgroup.protocol.transaction_records import decode_value as decode_transaction_value
from kgroup.runtime.cluster import Cluster
from tests.conformance.message_values import Case, all_cases, profile, record_cases, values

SEEDS = st.integers(0, 1 << 32)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """`data` cut, lengthened, or with some bytes turned into numbers that lengths and tags trip over."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del out[at:]
        elif kind == 1:
            out[at:at] = chance.randbytes(chance.randrange(1, 6))
        elif at < len(out):
            out[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return bytes(out)


def decodes_or_refuses(cls: type[Message], data: bytes, version: int) -> None:
    try:
        found = cls.decode(data, version)
    except DecodeError as error:
        assert cls.__name__ in error.message
        return
    again = found.encode(version)
    assert cls.decode(again, version).encode(version) == again


@pytest.mark.parametrize("case", all_cases() + record_cases(), ids=str)
def test_damaged_messages_raise_only_decode_error(case: Case) -> None:
    @profile(5)
    @given(values(case.cls, case.version), SEEDS)
    def check(message: Any, seed: int) -> None:
        chance = random.Random(seed)
        data = message.encode(case.version)
        assert case.cls.decode(data, case.version) == message
        for _ in range(12):
            decodes_or_refuses(case.cls, damaged(data, chance), case.version)
        decodes_or_refuses(case.cls, chance.randbytes(chance.randrange(40)), case.version)
        with pytest.raises(DecodeError):
            case.cls.decode(data + b"\0", case.version)

    check()


@profile(300)
@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_random_records(key: bytes, value: bytes | None) -> None:
    for lead in (b"", b"\0", *(bytes([0, kind]) for kind in range(24))):
        with suppress(DecodeError):
            found = decode_key(lead + key)
            if isinstance(found, UnknownKey):
                assert encode_key(found) == lead + key
            else:
                assert decode_key(encode_key(found)) == found
                decoded = decode_value(found, value)
                assert (decoded is None) == (value is None) == (encode_value(decoded) is None)
    for decode in (decode_transaction_key, decode_transaction_value, Subscription.decode, Assignment.decode):
        with suppress(DecodeError):
            decode(key)


@profile(300)
@given(st.binary(max_size=40))
def test_random_requests_and_responses(data: bytes) -> None:
    for lead in (b"", b"\0", *(bytes([0, key]) for key in range(0, 90, 3)), b"\0\x12\0\3", b"\0\x44\0\1"):
        for decode in (RequestHeader.decode, decode_request):
            with suppress(DecodeError):
                decode(lead + data)
    for key, version in ((18, 0), (18, 4), (12, 0), (12, 4), (9, 10)):
        with suppress(DecodeError):
            decode_response(data, key, version)


@pytest.fixture(scope="module")
def routes() -> Iterator[Routes]:
    """The broker's own way from bytes to requests."""
    cluster = Cluster(None, offsets_partitions=1)
    yield Routes(Dispatcher(cluster, ALL))
    cluster.close()


@pytest.mark.parametrize("case", [c for c in all_cases() if c.cls.__name__.endswith("Request")], ids=str)
def test_the_broker_reads_what_is_sent_and_of_damage_refuses_no_less(routes: Routes, case: Case) -> None:
    """It has a decoder of its own, which is faster: whatever the shared one takes, it takes for the same."""

    @profile(5)
    @given(values(case.cls, case.version), SEEDS)
    def check(message: Any, seed: int) -> None:
        chance = random.Random(seed)
        client_id = chance.choice([None, "", "client", "é" * 200])
        whole = encode_request(message, case.version, chance.randrange(1 << 31), client_id)
        agrees(routes, whole[4:])
        for _ in range(12):
            agrees(routes, damaged(whole[4:], chance))

    check()


@profile(300)
@given(data=st.binary(max_size=40))
def test_the_broker_refuses_random_bytes_as_the_shared_decoder_does(routes: Routes, data: bytes) -> None:
    for lead in (b"", b"\0", *(bytes([0, key]) for key in range(0, 90, 3)), b"\0\x12\0\3", b"\0\x44\0\1"):
        agrees(routes, lead + data)


def agrees(routes: Routes, frame: bytes) -> None:
    try:
        header, message = decode_request(frame)
    except DecodeError:
        with suppress(DecodeError, NotServed):  # or it reads what has bytes behind it, as Kafka does
            routes.read(frame, 0)
        return
    try:
        route, correlation, client_id, body = routes.read(frame, 0)
    except NotServed:
        assert routes.find(header.api_key, header.api_version) is None
        return
    assert (route.version, correlation) == (header.api_version, header.correlation_id)
    assert (client_id, body) == (header.client_id or "", message)


@profile(100)
@given(st.lists(st.binary(max_size=30), max_size=6), SEEDS)
def test_frames_come_out_however_the_stream_is_cut(payloads: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    stream = b"".join(frame(p) for p in payloads)
    buffer = FrameBuffer(limit=30)
    got: list[bytes] = []
    while stream:
        cut = chance.randrange(1, 12)
        got += buffer.feed(stream[:cut])
        stream = stream[cut:]
    assert got == payloads
    assert len(buffer) == 0


@pytest.mark.parametrize("case", [c for c in all_cases() if c.version == c.cls.VERSIONS[-1]], ids=str)
def test_whole_requests_and_responses_round_trip(case: Case) -> None:
    @profile(3)
    @given(values(case.cls, case.version), st.integers(0, 1 << 30))
    def check(message: Any, correlation: int) -> None:
        if case.cls.__name__.endswith("Request"):
            (payload,) = FrameBuffer().feed(encode_request(message, case.version, correlation, "cli"))
            header = RequestHeader(case.cls.API, case.version, correlation, "cli")
            assert decode_request(payload) == (header, message)
        else:
            (payload,) = FrameBuffer().feed(encode_response(message, case.version, correlation))
            assert decode_response(payload, case.cls.API, case.version) == (correlation, message)

    check()
