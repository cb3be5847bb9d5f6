"""The client's side of a connection, byte for byte and without a socket."""

from __future__ import annotations

import pytest

from kgroup.client.connection import Connection
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode
from kgroup.protocol.headers import decode_request, encode_response
from kgroup.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

LIST_GROUPS, LEAVE_GROUP, API_VERSIONS = 16, 13, 18


def greeting(**served: tuple[int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=int(key[1:]), min_version=low, max_version=high)
            for key, (low, high) in served.items()
        )
    )


def greeted(**served: tuple[int, int]) -> Connection:
    """A connection that has heard what the broker serves."""
    connection = Connection("test", "b:9092")
    connection.hello()
    (answer,) = connection.receive(encode_response(greeting(**served), 3, 0))
    assert connection.greeted(answer) is None
    return connection


def test_the_first_request_is_api_versions_3_with_our_name() -> None:
    data = Connection("test", "b:9092").hello()
    header, request = decode_request(data[4:])
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (18, 3, 0, "test")
    assert isinstance(request, ApiVersionsRequest)
    assert request.client_software_name == "kgroup"


def test_what_is_served_is_learnt() -> None:
    connection = greeted(k16=(0, 4), k18=(0, 3))
    assert connection.served == {LIST_GROUPS: range(5), API_VERSIONS: range(4)}


@pytest.mark.parametrize(("told", "asked"), [({"k18": (0, 2)}, 2), ({"k18": (0, 0)}, 0), ({}, 0)])
def test_an_old_broker_is_asked_again_in_a_version_it_knows(
    told: dict[str, tuple[int, int]], asked: int
) -> None:
    """KIP-511: the refusal comes in version 0, with the broker's range or, before Kafka 2.4, without."""
    connection = Connection("test", "b:9092")
    connection.hello()
    refusal = greeting(**told)
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
    (answer,) = connection.receive(encode_response(refusal, 0, 0))
    again = connection.greeted(answer)
    assert again is not None
    header, _ = decode_request(again[4:])
    assert (header.api_version, header.correlation_id) == (asked, 1)
    (answer,) = connection.receive(encode_response(greeting(k16=(0, 1)), asked, 1))
    assert connection.greeted(answer) is None
    assert connection.served == {LIST_GROUPS: range(2)}


def test_a_broker_that_refuses_for_good_is_not_asked_for_ever() -> None:
    connection = Connection("test", "b:9092")
    connection.hello()
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    connection.greeted(refusal)
    with pytest.raises(BrokerRefused, match="refuses ApiVersions: UNSUPPORTED_VERSION"):
        connection.greeted(refusal)


@pytest.mark.parametrize(("lowest", "highest", "version"), [(0, None, 4), (0, 2, 2), (4, None, 4), (0, 9, 4)])
def test_the_highest_common_version_within_the_limits_is_picked(
    lowest: int, highest: int | None, version: int
) -> None:
    assert greeted(k16=(1, 4)).pick_version(ListGroupsRequest(), lowest, highest) == version


@pytest.mark.parametrize(
    ("served", "lowest", "highest", "words"),
    [
        ({"k13": (0, 2)}, 3, None, "b:9092 serves LeaveGroup 0-2, kgroup needs 3-5"),
        ({"k13": (7, 9)}, 0, None, "b:9092 serves LeaveGroup 7-9, kgroup needs 0-5"),
        ({"k13": (3, 5)}, 0, 2, "b:9092 serves LeaveGroup 3-5, kgroup needs 0-2"),
        ({"k16": (0, 5)}, 0, None, "b:9092 does not serve LeaveGroup, kgroup needs 0-5"),
    ],
)
def test_sm_63_a_version_gap_is_told_in_numbers(
    served: dict[str, tuple[int, int]], lowest: int, highest: int | None, words: str
) -> None:
    """SM-63: broker too old is UNSUPPORTED_VERSION with both sides named."""
    with pytest.raises(BrokerRefused) as caught:
        greeted(**served).pick_version(LeaveGroupRequest(group_id="g"), lowest, highest)
    assert (caught.value.message, caught.value.name) == (words, "UNSUPPORTED_VERSION")


def test_answers_come_in_order_however_the_bytes_arrive() -> None:
    connection = greeted(k16=(0, 5))
    for version in (5, 3):
        connection.send(ListGroupsRequest(), version)
    data = b"".join(
        encode_response(ListGroupsResponse(groups=(ListedGroup(group_id=name),)), version, correlation)
        for name, version, correlation in (("first", 5, 1), ("second", 3, 2))
    )
    heard = [answer for byte in data for answer in connection.receive(bytes([byte]))]
    assert [answer.groups[0].group_id for answer in heard] == ["first", "second"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (encode_response(ListGroupsResponse(), 5, 7), "correlation id 7 where 1 was expected"),
        (encode_response(ListGroupsResponse(), 5, 1)[:-1] + b"\5", "ListGroupsResponse v5"),
        (b"\0\0\0\2ab", "cut short"),
        (b"\xff\xff\xff\xff", "frame length -1"),
    ],
)
def test_bytes_that_are_not_the_answer_are_named(data: bytes, words: str) -> None:
    connection = greeted(k16=(0, 5))
    connection.send(ListGroupsRequest(), 5)
    with pytest.raises(DecodeError, match=words) as caught:
        list(connection.receive(data))
    assert caught.value.message.startswith("b:9092: ")


def test_an_answer_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(DecodeError, match="an answer to no request"):
        list(greeted(k16=(0, 5)).receive(encode_response(ListGroupsResponse(), 5, 1)))


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", "the answer is TLS, not plain Kafka", "security.protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n", "the answer is HTTP, not Kafka", "check the port"),
    ],
)
def test_another_protocol_is_recognised(data: bytes, words: str, hint: str) -> None:
    connection = Connection("test", "b:9092")
    connection.hello()
    with pytest.raises(DecodeError, match=words) as caught:
        list(connection.receive(data))
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_a_controllers_port_is_named() -> None:
    """A KRaft quorum's listener serves other APIs; it was called too old or too new."""
    connection = greeted(k1=(0, 17), k18=(0, 4), k52=(0, 2), k55=(0, 2), k59=(0, 1), k62=(0, 4))
    with pytest.raises(BrokerRefused, match="is a controller's port") as refused:
        connection.pick_version(ListGroupsRequest())
    assert refused.value.hint == "name the port of a broker"
    assert not greeted(k1=(0, 17), k10=(0, 6), k18=(0, 4)).is_controller
