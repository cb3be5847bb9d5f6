"""Transactions through the broker: produce, offsets, ends, readers, fencing, by request version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.domain import ZERO_UUID, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.messages import add_partitions_to_txn as ap
from kgroup.protocol.messages import write_txn_markers as wm
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kgroup.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.list_transactions import ListTransactionsRequest
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.runtime.clock import ManualClock
from kgroup.transactions.state import Status
from tests.unit.transactions.transactional_client import (
    A0,
    A1,
    Broker,
    TransactionalClient,
    offsets_partition,
)

BOTH = pytest.mark.parametrize("implicit", [True, False], ids=["implicit", "explicit"])


def started(broker: Broker, name: str = "t", *, implicit: bool = True) -> TransactionalClient:
    client = TransactionalClient(broker, name, implicit=implicit)
    client.start()
    return client


def begun(broker: Broker, name: str = "t", *, implicit: bool = True) -> TransactionalClient:
    """A producer whose transaction has both partitions of topic `a` and the offsets of group `g`."""
    client = started(broker, name, implicit=implicit)
    if not implicit:
        assert not client.add(A0, A1)
        assert not client.add_offsets("g")
    return client


@BOTH
@pytest.mark.parametrize("committed", [True, False])
def test_records_and_offsets_take_effect_together(broker: Broker, implicit: bool, committed: bool) -> None:
    client = begun(broker, implicit=implicit)
    assert not client.send(A0, "x", "y")
    assert not client.send(A1, "z")
    assert not client.commit_offset("g", 5)
    assert (broker.read(A0), broker.read(A1), broker.offset("g")) == ([], [], -1)
    assert broker.offset("g", stable=True) == "UNSTABLE_OFFSET_COMMIT"
    assert not client.end(committed)
    seen = (broker.read(A0), broker.read(A1), broker.offset("g", stable=True))
    assert seen == ((["x", "y"], ["z"], 5) if committed else ([], [], -1))


@BOTH
def test_one_transaction_after_another(broker: Broker, implicit: bool) -> None:
    client = started(broker, implicit=implicit)
    for number in range(6):
        if not implicit:
            client.add(A0)
        assert not client.send(A0, f"{number}")
        assert not client.end(committed=number % 2 == 0)
    assert broker.read(A0) == ["0", "2", "4"]


def test_last_stable_offset_is_before_the_first_open_transaction(broker: Broker) -> None:
    first, second = begun(broker, "first"), begun(broker, "second")
    first.send(A0, "1")
    second.send(A0, "2")
    second.end()
    assert [broker.end_offset(A0, committed=c) for c in (True, False)] == [0, 3]
    assert [broker.end_offset(A0, committed=c, timestamp=1000) for c in (True, False)] == [-1, 0]
    data = broker.fetch(A0, committed=False)
    assert (data.high_watermark, data.last_stable_offset, data.aborted_transactions) == (3, 0, None)
    assert broker.fetch(A0).records == b""
    first.end(committed=False)
    assert broker.end_offset(A0, committed=True) == 4
    data = broker.fetch(A0)
    assert [(a.producer_id, a.first_offset) for a in data.aborted_transactions or ()] == [
        (first.producer_id, 0)
    ]
    assert broker.read(A0) == ["2"]
    assert broker.fetch(A0, 4).aborted_transactions == ()


def test_parked_fetch_is_released_by_the_end(broker: Broker) -> None:
    """A read_committed consumer that waits is woken by the marker, not by the record."""
    client = started(broker)
    client.send(A0, "x")
    assert broker.fetch(A0).records == b""
    client.end()
    assert broker.read(A0) == ["x"]


@pytest.mark.parametrize(("version", "code"), [(10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE")])
def test_partition_that_was_not_added(broker: Broker, version: int, code: str) -> None:
    client = started(broker, implicit=False)
    assert client.send(A0, "x", version=version).name == code
    client.add(A1)
    assert client.send(A0, "x", version=version).name == code


@pytest.mark.parametrize(("version", "code"), [(3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE")])
def test_group_that_was_not_added(broker: Broker, version: int, code: str) -> None:
    client = started(broker, implicit=False)
    client.add(A0)
    assert client.commit_offset("g", 1, version=version).name == code
    client.add_offsets("g")
    assert not client.commit_offset("g", 1, version=version)


def test_offsets_of_an_unnamed_group(broker: Broker) -> None:
    assert started(broker).commit_offset("", 1) is ErrorCode.INVALID_GROUP_ID


def test_transactional_batch_needs_a_transactional_id(broker: Broker) -> None:
    client = started(broker)
    client.name = ""
    assert client.send(A0, "x") is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_plain_batch_amid_a_transaction(broker: Broker) -> None:
    client = started(broker)
    client.send(A0, "x")
    assert client.send(A0, "y", transactional=False) is ErrorCode.INVALID_TXN_STATE


def test_first_sequence_of_an_implicit_transaction(broker: Broker) -> None:
    client = started(broker)
    client.sequences[A0] = 3
    assert client.send(A0, "x") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    client.sequences[A0] = 0
    assert not client.send(A0, "x")
    client.end()
    client.sequences[A0] = 1
    assert client.send(A0, "y") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "each epoch begins at 0"


@BOTH
def test_retried_batch_is_stored_once(broker: Broker, implicit: bool) -> None:
    client = begun(broker, implicit=implicit)
    client.send(A0, "x")
    client.sequences[A0] = 0
    assert not client.send(A0, "x")
    client.end()
    assert broker.read(A0) == ["x"]


@BOTH
def test_zombie_is_fenced_everywhere(broker: Broker, implicit: bool) -> None:
    zombie = begun(broker, implicit=implicit)
    zombie.send(A0, "old")
    zombie.commit_offset("g", 1)
    heir = begun(broker, implicit=implicit)
    assert zombie.send(A0, "late") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.commit_offset("g", 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end() is ErrorCode.PRODUCER_FENCED
    assert zombie.add(A0) is ErrorCode.PRODUCER_FENCED
    heir.send(A0, "new")
    heir.end()
    assert zombie.init(producer_id=zombie.producer_id, producer_epoch=zombie.epoch) is (
        ErrorCode.PRODUCER_FENCED
    )
    assert (broker.read(A0), broker.offset("g", stable=True)) == (["new"], -1)


def test_fencing_is_told_in_words_old_clients_know(broker: Broker) -> None:
    zombie = started(broker, implicit=False)
    started(broker)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert [zombie.add(A0, version=1), zombie.add_offsets("g", version=1), zombie.end(version=1)] == [old] * 3
    request = InitProducerIdRequest(
        transactional_id="t", transaction_timeout_ms=1, producer_id=99, producer_epoch=0
    )
    assert [broker.ask(request, version).error_code for version in (3, 4)] == [old, new]


def test_timed_out_transaction_is_aborted(broker: Broker, clock: ManualClock) -> None:
    client = TransactionalClient(broker, timeout_ms=500)
    client.start()
    client.send(A0, "x")
    client.commit_offset("g", 1)
    broker.transport.run_until(clock.now_ms() + 500)
    assert broker.offset("g", stable=True) == "UNSTABLE_OFFSET_COMMIT"
    broker.transport.run_until(clock.now_ms() + 1)
    assert broker.offset("g", stable=True) == -1
    assert broker.end_offset(A0, committed=True) == 2
    assert client.end() is ErrorCode.INVALID_TXN_STATE
    assert client.send(A0, "y") is ErrorCode.INVALID_PRODUCER_EPOCH


def test_adding_is_all_or_nothing(broker: Broker) -> None:
    client = started(broker, implicit=False)
    assert client.add(A0, TopicPartition("none", 0)) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert client.add(TopicPartition("none", 0), A0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.send(A0, "x") is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "code"), [(4, "INVALID_TXN_STATE"), (5, "TRANSACTION_ABORTABLE")])
def test_brokers_verify_many_at_once(broker: Broker, version: int, code: str) -> None:
    client = started(broker, implicit=False)
    client.add(A0)
    topic = ap.AddPartitionsToTxnTopic(name="a", partitions=(0, 1))

    def asked(name: str, verify_only: bool = True) -> ap.AddPartitionsToTxnTransaction:
        return ap.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=client.producer_id,
            producer_epoch=client.epoch,
            verify_only=verify_only,
            topics=(topic,),
        )

    def codes(*wanted: ap.AddPartitionsToTxnTransaction) -> list[list[str]]:
        answer = broker.ask(ap.AddPartitionsToTxnRequest(transactions=wanted), version)
        return [
            [ErrorCode(p.partition_error_code).name for p in result.topic_results[0].results_by_partition]
            for result in answer.results_by_transaction
        ]

    assert codes(asked("t"), asked("u")) == [["NONE", code], ["INVALID_PRODUCER_ID_MAPPING"] * 2]
    assert codes(asked("t", verify_only=False)) == [["NONE", "NONE"]]
    assert codes(asked("t")) == [["NONE", "NONE"]]


def test_transactional_ids_have_a_coordinator(broker: Broker) -> None:
    answer = broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("t", "u")))
    assert [(c.error_code, c.node_id) for c in answer.coordinators] == [(0, 0), (0, 0)]


def test_operators_see_transactions(broker: Broker, clock: ManualClock) -> None:
    client = started(broker)
    started(broker, "idle")
    begun_ms = clock.now_ms()
    client.send(A0, "x", "y")
    found = broker.ask(DescribeTransactionsRequest(transactional_ids=("t", "none", ""))).transaction_states
    assert [ErrorCode(state.error_code).name for state in found] == [
        "NONE",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "INVALID_REQUEST",
    ]
    assert (found[0].transaction_state, found[0].transaction_start_time_ms) == ("Ongoing", begun_ms)
    assert [(t.topic, t.partitions) for t in found[0].topics] == [("a", (0,))]
    asked = DescribeProducersRequest(topics=(TopicRequest(name="a", partition_indexes=(0, 9)),))
    known, unknown = broker.ask(asked).topics[0].partitions
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.last_sequence, producer.current_txn_start_offset) == (
        client.producer_id,
        1,
        0,
    )


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["idle", "t"]),
        ({"state_filters": ("Ongoing", "Bogus")}, ["t"]),
        ({"producer_id_filters": (99,)}, []),
        ({"duration_filter": 0}, ["idle"]),
        ({"transactional_id_pattern": "i.*"}, ["idle"]),
        ({"transactional_id_pattern": "i"}, []),
    ],
)
def test_operators_list_transactions(broker: Broker, filters: dict[str, object], names: list[str]) -> None:
    started(broker).send(A0, "x")
    started(broker, "idle")
    answer = broker.ask(ListTransactionsRequest(**filters))  # type: ignore[arg-type]
    assert sorted(state.transactional_id for state in answer.transaction_states) == names
    assert answer.unknown_state_filters == (("Bogus",) if "state_filters" in filters else ())


def test_operators_list_by_a_pattern_that_is_none(broker: Broker) -> None:
    answer = broker.ask(ListTransactionsRequest(transactional_id_pattern="("))
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    ("epoch", "version", "code"),
    [(0, 1, "NONE"), (0, 0, "NONE"), (0, 2, "INVALID_PRODUCER_EPOCH"), (1, 2, "NONE")],
)
def test_markers_of_other_brokers(broker: Broker, epoch: int, version: int, code: str) -> None:
    """KIP-1228: from transaction version 2 on a marker has a newer epoch than the records it ends."""
    client = started(broker)
    client.send(A0, "x")
    topics = (wm.WritableTxnMarkerTopic(name="a", partition_indexes=(0, 9)),)
    marker = wm.WritableTxnMarker(
        producer_id=client.producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=topics,
        coordinator_epoch=0,
        transaction_version=version,
    )
    request = wm.WriteTxnMarkersRequest(markers=(marker,))
    first, second = (broker.ask(request).markers[0].topics[0].partitions for _ in range(2))
    assert [ErrorCode(p.error_code).name for p in first] == [code, "UNKNOWN_TOPIC_OR_PARTITION"]
    assert ErrorCode(second[0].error_code).name == code, "the same marker again"
    assert broker.read(A0) == (["x"] if code == "NONE" else [])


def test_topic_deleted_amid_a_transaction(broker: Broker) -> None:
    client = begun(broker)
    client.send(A0, "x")
    client.commit_offset("g", 3)
    broker.ask(DeleteTopicsRequest(topics=(DeleteTopicState(name="a", topic_id=ZERO_UUID),), timeout_ms=1000))
    assert not client.end()
    assert broker.offset("g", stable=True) == -1


@pytest.mark.parametrize("how", ["group", "offset"])
def test_offsets_deleted_amid_a_transaction_stay_away(broker: Broker, how: str) -> None:
    """Spec 6.6: a commit after the deletion restores nothing."""
    client = begun(broker)
    client.commit_offset("g", 3)
    if how == "group":
        answer = broker.ask(DeleteGroupsRequest(groups_names=("g",)))
        assert answer.results[0].error_code == 0
    else:
        topic = OffsetDeleteRequestTopic(
            name="a", partitions=(OffsetDeleteRequestPartition(partition_index=0),)
        )
        answer = broker.ask(OffsetDeleteRequest(group_id="g", topics=(topic,)))
        assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    assert broker.offset("g", stable=True) == -1
    assert not client.end()
    assert broker.offset("g", stable=True) == -1


@BOTH
def test_restart_amid_a_transaction(
    open_broker: Callable[[Path | None], Broker], tmp_path: Path, implicit: bool
) -> None:
    broker = open_broker(tmp_path)
    broker.create_topic("a")
    client = begun(broker, implicit=implicit)
    client.send(A0, "x")
    client.commit_offset("g", 3)
    client.broker = broker = open_broker(tmp_path)
    assert (broker.read(A0), broker.offset("g", stable=True)) == ([], "UNSTABLE_OFFSET_COMMIT")
    client.sequences[A0] = 0
    assert not client.send(A0, "x"), "a retry"
    assert not client.send(A0, "y")
    assert not client.end()
    assert (broker.read(A0), broker.offset("g", stable=True)) == (["x", "y"], 3)
    broker = open_broker(tmp_path)
    assert (broker.read(A0), broker.offset("g", stable=True)) == (["x", "y"], 3)


def test_offsets_partition_has_its_stable_end_too(broker: Broker) -> None:
    at = offsets_partition("g", 2)
    client = started(broker)
    before = broker.end_offset(at, committed=False)
    client.commit_offset("g", 1)
    assert broker.end_offset(at, committed=True) == before
    client.end()
    assert broker.end_offset(at, committed=True) == before + 2


def test_the_next_id_of_an_end_that_was_decided_elsewhere_is_given_out_once(
    open_broker: Callable[[Path | None], Broker], tmp_path: Path
) -> None:
    """A copied log may name an id in `next_producer_id` alone, when the epochs before are used up."""
    broker = open_broker(tmp_path)
    TransactionalClient(broker).init()
    shard = next(
        s for s in broker.transport.dispatcher.transactions.shards if s and s.coordinator.transactions
    )
    known = replace(
        shard.coordinator.transactions["t"], status=Status.PREPARE_COMMIT, next_producer_id=90_000
    )
    key, value = known.record()
    shard.log.append([LogRecord(encode_key(key), encode_value(value))])
    other = TransactionalClient(open_broker(tmp_path), "other")
    assert not other.init()
    assert other.producer_id > 90_000
