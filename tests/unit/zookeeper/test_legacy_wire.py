"""Bytes of the coordinator of the ZooKeeper era: golden, both ways, and one error for all garbage."""

import random
from functools import partial

import pytest

from kgroup.errors import DecodeError
from kgroup.zookeeper.wire.codec import Awaiting, Frames, Unencodable, Wire
from kgroup.zookeeper.wire.messages import (
    Broker,
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    CommitOffsetResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    Ownership,
    PartitionAndOffset,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    Registered,
    RequestKey,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

WIRE = Wire(commit=True, client_id="k")
HEADER = Wire(header=True, commit=True, client_id="k")
H = (Broker(1, "h", 9092),)
T00 = PartitionAndOffset("t", "0-0", 42)
T01 = PartitionAndOffset("t", "0-1", 7)
METADATA, REGISTRATION, NOTHING = Awaiting.METADATA, Awaiting.REGISTRATION, Awaiting.NOTHING
FROM_CONSUMER = [
    (ClusterMetadataRequest(), "000000020005"),
    (
        RegisterConsumerRequest("g", "c1", '{"t":2}', True, "smallest", 6000),
        "0000002100060001670002633100077b2274223a327d010008736d616c6c65737400001770",
    ),
    (
        RegisterConsumerRequest("g", "c2", "*1*t.*", False, "largest", 9000),
        "0000001f00060001670002633200062a312a742e2a0000076c61726765737400002328",
    ),
    (PingResponse(0, "c1", (T00,)), "0000001a000700000002633100010001740003302d30000000000000002a"),
    (PingResponse(0, "c1", ()), "0000000a00070000000263310000"),
    (PingResponse(0, "c2", None), "000000080007000000026332"),
    (
        StopFetcherResponse(0, "c1", (T00, T01)),
        "0000002a000800000002633100020001740003302d30000000000000002a0001740003302d310000000000000007",
    ),
    (StopFetcherResponse(0, "c2", None), "000000080008000000026332"),
    (StartFetcherResponse(0, "c1"), "000000080009000000026331"),
    (
        CommitOffsetRequest("c1", (PartitionAndOffset("t", "0-0", 43),)),
        "00000018000a0002633100010001740003302d30000000000000002b",
    ),
    (DescribeGroupRequest("g", ""), "00000007000b0001670000"),
]
FROM_COORDINATOR = [
    (ClusterMetadataResponse(0, 1, H), METADATA, "0000001300000000000100010000000100016800002384"),
    (ClusterMetadataResponse(7, -1, ()), METADATA, "000000080007ffffffff0000"),
    (RegisterConsumerResponse(0), REGISTRATION, "000000020000"),
    (RegisterConsumerResponse(5), REGISTRATION, "000000020005"),
    (RegisterConsumerResponse(6), REGISTRATION, "000000020006"),
    (RegisterConsumerResponse(7), REGISTRATION, "000000020007"),
    (RegisterConsumerResponse(-1), REGISTRATION, "00000002ffff"),
    (PingRequest("c1", 0), NOTHING, "0000000a00070002633100000000"),
    (PingRequest("c1", 2), NOTHING, "0000000a00070002633100000002"),
    (StopFetcherRequest("c1"), NOTHING, "00000006000800026331"),
    (
        StartFetcherRequest(
            "c1",
            (
                Ownership("c1-0", (T00, T01)),
                Ownership("c1-1", (PartitionAndOffset("t", "0-2", -1),)),
            ),
            H,
        ),
        NOTHING,
        (
            "000000550009000263310002000463312d3000020001740003302d30000000000000002a0001740003302d31"
            "0000000000000007000463312d3100010001740003302d32ffffffffffffffff00010000000100016800002384"
        ),
    ),
    (StartFetcherRequest("c2", (), H), NOTHING, "00000015000900026332000000010000000100016800002384"),
    (CommitOffsetResponse(0, "c1"), NOTHING, "00000008000a000000026331"),
    (
        DescribeGroupResponse(0, "Stable", False, (Registered("c1", '{"t":2}', True, True, 6000, 1, 3),)),
        NOTHING,
        "0000002a000b00000006537461626c650000010002633100077b2274223a327d0101000017700000000100000003",
    ),
]
HEADERS = [
    (ClusterMetadataRequest(), 1, "0000000b000500000000000100016b"),
    (PingRequest("c1", 0), 7, "00000013000700000000000700016b0002633100000000"),
    (PingResponse(0, "c2", None), 7, "0000000c000000070007000000026332"),
]


def payload(hexa):
    (only,) = Frames().feed(bytes.fromhex(hexa))
    return only


@pytest.mark.parametrize(("message", "hexa"), FROM_CONSUMER)
def test_golden_bytes_of_consumers(message, hexa):
    """LC-35, LC-37, LC-40, LC-42, LC-44, LC-47: offsets are left out altogether with auto-commit off."""
    assert WIRE.encode(message).hex() == hexa
    assert WIRE.from_consumer(payload(hexa)) == (message, 0)


@pytest.mark.parametrize(("message", "awaiting", "hexa"), FROM_COORDINATOR)
def test_golden_bytes_of_coordinators(message, awaiting, hexa):
    """LC-06, OC-27, LC-36, LC-38, LC-39, LC-41, LC-43: a registration's answer is an error, no assignment."""
    assert WIRE.encode(message).hex() == hexa
    assert WIRE.from_coordinator(payload(hexa), awaiting) == (message, 0)


@pytest.mark.parametrize(("message", "correlation", "hexa"), HEADERS)
def test_golden_bytes_with_headers(message, correlation, hexa):
    """LC-81: version, correlation and client id behind the type; answers have the correlation in front."""
    assert HEADER.encode(message, correlation).hex() == hexa


@pytest.mark.parametrize("correlation", [0, 1, 0xFFFF])
def test_header_mode_round_trip(correlation):
    """LC-81: requests and answers of one direction are told apart by their first two bytes."""
    for message, _ in FROM_CONSUMER:
        sent = payload(HEADER.encode(message, correlation).hex())
        assert HEADER.from_consumer(sent) == (message, correlation)
    for message, awaiting, _ in FROM_COORDINATOR:
        sent = payload(HEADER.encode(message, correlation).hex())
        assert HEADER.from_coordinator(sent, awaiting) == (message, correlation)


def test_types_and_errors_are_numbers_of_their_own():
    """LC-46: one table each; 0.7's own requests and errors keep theirs."""
    keys, errors = [int(key) for key in RequestKey], [int(error) for error in ErrorMapping]
    assert len({key.name for key in RequestKey}) == len(set(keys)) == 7 and min(keys) > 4
    assert len(set(errors)) == len(ErrorMapping.__members__)
    assert not {1, 2, 3, 4} & set(errors)


@pytest.mark.parametrize(
    "hexa",
    [
        "ffffffff",
        "7fffffff",
        "00000000",
        "0000000100",
        "00100001",
    ],
    ids=["negative", "huge", "empty", "one byte", "above the limit"],
)
def test_sizes_that_no_frame_has(hexa):
    """LC-45, scenario 26."""
    with pytest.raises(DecodeError):
        list(Frames().feed(bytes.fromhex(hexa)))


@pytest.mark.parametrize(
    "hexa",
    [
        "0004",
        "000a00026331ffff",
        "000700000002633100",
        "00070000000263317fff0001740003302d30000000000000002a",
        "0007000000026331ffff",
        "000700000002ff31",
        "00070000ffff",
        "0007000000fe",
        "0006000167000263310002"[:10],
        "00050000",
        "0006000167000263310001410200086c",
        "00",
    ],
)
def test_garbage_is_one_typed_error(hexa):
    """LC-45, OC-29, scenario 26: unknown types, short lists, bad UTF-8, nulls, bytes left over."""
    with pytest.raises(DecodeError):
        WIRE.from_consumer(bytes.fromhex(hexa))


def test_commits_are_an_option():
    """LC-82: without it type 10 is unknown."""
    (commit,) = (payload(hexa) for message, hexa in FROM_CONSUMER if type(message) is CommitOffsetRequest)
    with pytest.raises(DecodeError):
        Wire().from_consumer(commit)


def test_frames_come_in_pieces():
    """LC-83: a half-read answer waits for its rest, whatever else goes on."""
    stream = b"".join(bytes.fromhex(hexa) for _, hexa in FROM_CONSUMER)
    frames = Frames()
    found = [payload for byte in stream for payload in frames.feed(bytes([byte]))]
    assert [WIRE.from_consumer(payload)[0] for payload in found] == [message for message, _ in FROM_CONSUMER]


def test_what_the_layout_has_no_room_for():
    with pytest.raises(Unencodable):
        WIRE.encode(PingRequest("c" * 40_000, 0))
    with pytest.raises(Unencodable):
        WIRE.encode(PingResponse(0, "c", (T00,) * 40_000))


def frames_to_damage(wire):
    """Every message's payload, and how it is read."""
    for message, _ in FROM_CONSUMER:
        yield wire.encode(message, 7)[4:], wire.from_consumer
    for message, awaiting, _ in FROM_COORDINATOR:
        yield wire.encode(message, 7)[4:], partial(wire.from_coordinator, awaiting=awaiting)


def damaged(rng, payload):
    frame = bytearray(payload)
    for _ in range(rng.randrange(3)):
        frame[rng.randrange(len(frame))] = rng.randrange(256)
    if rng.random() < 0.3:
        del frame[rng.randrange(len(frame) + 1) :]
    return bytes(frame)


def test_fuzz():
    """LC-45, scenario 26: 100,000 frames, of chance and of real ones damaged; what decodes encodes again."""
    rng = random.Random(26)
    kinds = [(wire, *kind) for wire in (WIRE, HEADER) for kind in frames_to_damage(wire)]
    decoded = refused = 0
    for number in range(100_000):
        wire, frame, read = rng.choice(kinds)
        frame = damaged(rng, frame) if number % 4 else rng.randbytes(rng.randrange(60))
        try:
            message, correlation = read(frame)
        except DecodeError:
            refused += 1
            continue
        decoded += 1
        again = wire.encode(message, correlation)[4:]
        assert wire.header or again == frame
    assert min(decoded, refused) > 20_000
