"""Headers: the flexible ones, the exception for ApiVersions, and what cannot be read."""

import struct

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol.headers import (
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.registry import header_versions


@pytest.mark.parametrize(
    ("key", "version", "headers"),
    [
        (12, 3, (1, 0)),
        (12, 4, (2, 1)),
        (18, 2, (1, 0)),
        (18, 3, (2, 0)),
        (17, 1, (1, 0)),
        (68, 0, (2, 1)),
        (47, 0, (1, 0)),
    ],
)
def test_header_versions(key: int, version: int, headers: tuple[int, int]) -> None:
    assert header_versions(key, version) == headers


def test_a_request_on_the_wire() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert encode_request(request, 4, 7, "c") == (
        b"\0\0\0\x16" + b"\0\x0c\0\4\0\0\0\7\0\1c\0" + b"\2g\0\0\0\1\2m\0\0"
    )
    assert encode_request(request, 0, 7, None)[4:14] == b"\0\x0c\0\0\0\0\0\7\xff\xff"


def test_a_response_on_the_wire() -> None:
    assert encode_response(HeartbeatResponse(), 4, 7) == b"\0\0\0\x0c" + b"\0\0\0\7\0" + bytes(7)
    assert encode_response(ApiVersionsResponse(), 3, 7)[4:9] == b"\0\0\0\7\0"
    frame = encode_response(HeartbeatResponse(error_code=25), 4, 7)[4:]
    assert correlation_id_of(frame) == 7
    assert decode_response(frame, 12, 4) == (7, HeartbeatResponse(error_code=25))


def test_tags_in_headers_are_skipped() -> None:
    header = b"\0\x0c\0\4\0\0\0\7\0\1c" + b"\2\0\3abc\x81\1\0"
    assert RequestHeader.decode(header) == (RequestHeader(12, 4, 7, "c"), len(header))
    assert decode_response(b"\0\0\0\7" + b"\1\5\2xy" + bytes(7), 12, 4) == (7, HeartbeatResponse())


def test_an_api_versions_request_of_a_version_not_served_still_has_a_header() -> None:
    frame = bytearray(encode_request(ApiVersionsRequest(), 4, 9, "c")[4:])
    struct.pack_into(">h", frame, 2, 99)
    header, _ = RequestHeader.decode(bytes(frame))
    assert header == RequestHeader(18, 99, 9, "c")
    with pytest.raises(DecodeError, match="no version 99"):
        decode_request(bytes(frame))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut short"),
        (b"\0\x0c\0\4\0\0\0\7\0\1", "1 bytes wanted at byte 10, 0 left"),
        (b"\0\x0c\0\4\0\0\0\7\xff\xfe", "negative length -2"),
        (b"\0\x0c\0\4\0\0\0\7\0\1\xff\0", "not UTF-8"),
        (b"\0\x0c\0\4\0\0\0\7\0\0", "cut short"),
        (b"\0\x0c\0\4\0\0\0\7\0\0\1\0\x09", "9 bytes wanted"),
        (b"\x7f\xff\0\0\0\0\0\7\0\0", "no API has key 32767"),
    ],
)
def test_headers_that_are_none(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=f"request header.*{problem}"):
        RequestHeader.decode(data)


def test_bytes_behind_a_request_or_response_are_refused() -> None:
    request = encode_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 7, None)[4:]
    with pytest.raises(DecodeError, match="HeartbeatRequest v0 ends at byte"):
        decode_request(request + b"\0")
    with pytest.raises(DecodeError, match="HeartbeatResponse v0 ends at byte"):
        decode_response(encode_response(HeartbeatResponse(), 0, 7)[4:] + b"\0", 12, 0)
    with pytest.raises(DecodeError, match="response header: cut short"):
        decode_response(b"\0\0\0", 12, 0)
