"""A request about many partitions pauses, so that others have their turn; counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.broker.call import Call
from kgroup.broker.dispatch import PARTS_AT_ONCE
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode, StorageError
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kgroup.protocol.messages.read_share_group_state import (
    PartitionOfLeader,
    ReadShareGroupStateRequest,
    TopicOfLeader,
)
from kgroup.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import REMOVED_AT_ONCE, Cluster
from tests.unit.broker.brokers import create_topic

COUNT = 2 * PARTS_AT_ONCE + 50
ALL = tuple(range(COUNT))
RECORDS = encode_batch([LogRecord(None, b"v")])


class Cutting:
    """A peer whose connection may be closed."""

    is_open = True
    cut: int | None = None

    def cut_after(self, size: int) -> None:
        self.cut = size


class Loop:
    """What was asked of a loop: later turns, in order."""

    def __init__(self, transport: EmbeddedTransport) -> None:
        self.dispatcher = transport.dispatcher
        self.turns: list[Callable[[], None]] = []
        self.answers: list[Message | None] = []
        self.peer = Cutting()
        self.dispatcher.later = transport.cluster.later = self.turns.append

    def send(self, request: Message, version: int | None = None) -> object:
        chosen = request.VERSIONS[-1] if version is None else version
        call = Call(request, chosen, answer=self.answers.append, peer=self.peer)
        return self.dispatcher.handle(call)

    def turn(self) -> None:
        self.turns.pop(0)()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, clock=ManualClock()))
    create_topic(transport, "t", COUNT)
    yield Loop(transport)
    transport.cluster.close()


def produce(acks: int = 1, last: int = COUNT) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=p, records=RECORDS) for p in (*ALL[:-1], last - 1))
    return ProduceRequest(
        acks=acks, timeout_ms=0, topic_data=(TopicProduceData(name="t", partition_data=data),)
    )


def offsets(count: int = COUNT) -> ListOffsetsRequest:
    wanted = tuple(ListOffsetsPartition(partition_index=p, timestamp=-1) for p in range(count))
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=wanted),))


LONG: dict[str, tuple[Message, int | None]] = {
    "Produce": (produce(), 9),
    "ListOffsets": (offsets(), None),
    "FindCoordinator": (FindCoordinatorRequest(coordinator_keys=tuple(map(str, ALL))), None),
    "WriteTxnMarkers": (
        WriteTxnMarkersRequest(
            markers=(
                WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=True,
                    coordinator_epoch=0,
                    topics=(WritableTxnMarkerTopic(name="t", partition_indexes=ALL),),
                ),
            )
        ),
        1,
    ),
    "ReadShareGroupState": (
        ReadShareGroupStateRequest(
            group_id="g",
            topics=(
                TopicOfLeader(
                    topic_id=bytes(15) + b"\1",
                    partitions=tuple(PartitionOfLeader(partition=p, leader_epoch=0) for p in ALL),
                ),
            ),
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_request_lets_others_in_between(loop: Loop, name: str) -> None:
    assert loop.send(*LONG[name]) is None
    for _ in range(COUNT // PARTS_AT_ONCE):
        short = loop.send(offsets(1))
        assert isinstance(short, ListOffsetsResponse), "a short one is answered at once"
        assert (loop.answers, len(loop.turns)) == ([], 1)
        loop.turn()
    assert loop.turns == []
    [answer] = loop.answers
    assert answer is not None
    loop.dispatcher.later = None
    at_once = loop.send(*LONG[name])
    if name in ("ListOffsets", "FindCoordinator"):
        assert at_once == answer
    else:
        assert type(at_once) is type(answer)


def test_all_of_a_long_produce_is_written_and_a_failure_closes_one_that_expects_no_answer(loop: Loop) -> None:
    loop.send(produce(acks=0), 9)
    while loop.turns:
        loop.turn()
    assert (loop.answers, loop.peer.cut) == ([None], None)
    ends = [loop.dispatcher.cluster.log("t", p) for p in ALL]
    assert [log.end_offset for log in ends if log is not None] == [1] * COUNT
    loop.send(produce(acks=0, last=COUNT + 9), 9)
    while loop.turns:
        loop.turn()
    assert (loop.answers, loop.peer.cut) == ([None], 0)


def test_what_fails_in_a_later_turn_is_answered(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loop.send(produce(), 9) is None

    def fail(*_: object, **__: object) -> tuple[int, int]:
        raise StorageError("the disk is full")

    monkeypatch.setattr("kgroup.log.partition.PartitionLog.append_batches", fail)
    while loop.turns:
        loop.turn()
    [answer] = loop.answers
    assert isinstance(answer, ProduceResponse)
    codes = [p.error_code for p in answer.responses[0].partition_responses]
    assert codes == [0] * PARTS_AT_ONCE + [ErrorCode.KAFKA_STORAGE_ERROR] * (COUNT - PARTS_AT_ONCE)


def test_folders_of_a_deleted_topic_go_in_turns_and_never_those_of_a_new_one(
    loop: Loop, tmp_path: Path
) -> None:
    def folders() -> int:
        return sum(path.name.startswith("t-") for path in tmp_path.iterdir())

    loop.send(produce(), 9)
    while loop.turns:
        loop.turn()
    assert folders() == COUNT
    gone = DeleteTopicsRequest(timeout_ms=0, topics=(DeleteTopicState(name="t", topic_id=bytes(16)),))
    loop.send(gone)
    assert folders() == COUNT - REMOVED_AT_ONCE
    create_topic(EmbeddedTransport(loop.dispatcher.cluster), "t", COUNT)
    assert folders() == 0
    loop.send(produce(), 9)
    while loop.turns:
        loop.turn()
    assert folders() == COUNT
    loop.send(gone)
    while loop.turns:
        loop.turn()
    assert folders() == 0
