"""The transaction coordinator without I/O: epochs, fencing, ends, timeouts (KIP-98, KIP-360, KIP-890)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.errors import ErrorCode
from kgroup.protocol.transaction_records import TransactionLogKey
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.producers import ProducerEpoch
from kgroup.transactions.state import Status
from tests.unit.transactions.transaction_machine import A, B, Machine

LAST = 32_766  # the last epoch a producer is given


def in_epoch(machine: Machine, epoch: int) -> None:
    """Put the transactional id at an epoch it would take long to reach."""
    known = replace(machine.transaction(), producer_epoch=epoch)
    machine.log.append(known.record())
    machine.coordinator.replay(*known.record())


def test_new_ids_get_a_producer_of_their_own() -> None:
    machine = Machine()
    assert [machine.init("t"), machine.init("u"), machine.init("t")] == ["7/0", "8/0", "7/1"]
    assert machine.state("t") == "Empty 7/1"


def test_empty_name_and_timeouts() -> None:
    machine = Machine(TransactionConfig(max_timeout_ms=100))
    assert machine.init("") == "INVALID_REQUEST"
    assert [machine.init("t", timeout_ms=ms) for ms in (0, -1, 101)] == ["INVALID_TRANSACTION_TIMEOUT"] * 3
    assert [machine.init("t", timeout_ms=ms) for ms in (1, 100)] == ["7/0", "7/1"]


def test_producer_goes_on_after_an_error() -> None:
    """KIP-360: the epoch it names must be the current one; the same request again changes nothing."""
    machine = Machine()
    machine.init()
    assert machine.init(expected=(7, 0)) == "7/1"
    assert machine.init(expected=(7, 0)) == "7/1"
    assert machine.init(expected=(7, 1)) == "7/2"
    assert machine.init(expected=(7, 0)) == "PRODUCER_FENCED"
    assert machine.init(expected=(9, 2)) == "PRODUCER_FENCED"
    machine.init()
    assert machine.init(expected=(7, 2)) == "PRODUCER_FENCED"
    assert Machine().init(expected=(99, 4)) == "7/0"


def test_used_up_epochs_bring_a_new_id() -> None:
    machine = Machine()
    machine.init()
    in_epoch(machine, LAST)
    assert machine.init(expected=(7, LAST - 2)) == "PRODUCER_FENCED", "another process had the id since"
    assert machine.init(expected=(7, LAST)) == "8/0"
    assert machine.init(expected=(7, LAST)) == "8/0", "a retry"
    assert machine.init(expected=(7, 5)) == "PRODUCER_FENCED"
    assert machine.init(expected=(7, 0)) == "PRODUCER_FENCED", "the new id's epoch, the old id"
    in_epoch(machine, LAST)
    assert machine.init() == "9/0"


def test_used_up_epochs_at_the_end_of_a_transaction() -> None:
    machine = Machine()
    machine.init()
    in_epoch(machine, LAST)
    machine.add((7, LAST), A)
    assert machine.end((7, LAST)) == "8/0"
    (written,) = machine.write_markers()
    assert (written.marker.producer_id, written.marker.producer_epoch) == (7, LAST + 1)
    assert machine.state() == "CompleteCommit 8/0"
    assert machine.end((7, LAST)) == "8/0", "a retry"
    assert machine.end((7, LAST), committed=False) == "INVALID_TXN_STATE"
    assert machine.add((7, LAST), A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [0, 2])
def test_partitions_start_a_transaction(version: int) -> None:
    machine = Machine()
    machine.init()
    assert machine.add((7, 0), A, version=version) is ErrorCode.NONE
    first = machine.transaction()
    assert (first.status, first.partitions, first.started_ms) == (Status.ONGOING, frozenset({A}), 1000)
    machine.now_ms += 5
    appended = len(machine.log)
    assert machine.add((7, 0), A, version=version) is ErrorCode.NONE
    assert len(machine.log) == appended, "nothing new to say"
    machine.add((7, 0), A, B, version=version)
    second = machine.transaction()
    assert (second.partitions, second.started_ms, second.updated_ms) == (frozenset({A, B}), 1000, 1005)


def test_partitions_are_refused() -> None:
    machine = Machine()
    assert machine.add((7, 0), A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    machine.init()
    machine.init()
    assert machine.add((8, 1), A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert machine.add((7, 0), A) is ErrorCode.PRODUCER_FENCED
    machine.add((7, 1), A)
    machine.end((7, 1), version=0)
    assert machine.add((7, 1), B) is ErrorCode.CONCURRENT_TRANSACTIONS
    machine.write_markers()
    assert machine.add((7, 1), B) is ErrorCode.NONE
    assert machine.transaction().partitions == {B}


def test_verification() -> None:
    machine = Machine()
    machine.init()
    machine.add((7, 0), A)
    found = machine.coordinator.verify_partitions("t", ProducerEpoch(7, 0), [A, B])
    assert found == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}


@pytest.mark.parametrize(("committed", "ended"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
def test_end_of_the_first_protocol_keeps_the_epoch(committed: bool, ended: str) -> None:
    machine = Machine()
    machine.init()
    assert machine.end((7, 0), committed, version=0) == "INVALID_TXN_STATE", "nothing has begun"
    machine.add((7, 0), A, B, version=0)
    assert machine.end((7, 1), committed, version=0) == "PRODUCER_FENCED"
    assert machine.end((7, 0), committed, version=0) == "-1/-1"
    assert machine.end((7, 0), committed, version=0) == "CONCURRENT_TRANSACTIONS"
    assert machine.end((7, 0), not committed, version=0) == "INVALID_TXN_STATE"
    assert machine.init() == "CONCURRENT_TRANSACTIONS"
    (markers,) = machine.write_markers()
    assert (markers.partitions, markers.marker.committed) == (frozenset({A, B}), committed)
    assert machine.state() == f"{ended} 7/0"
    assert machine.end((7, 0), committed, version=0) == "-1/-1", "a retry"
    assert machine.end((7, 0), not committed, version=0) == "INVALID_TXN_STATE"


def second_end(before: str) -> Machine:
    """A transactional id in one of the states without a transaction, its producer in epoch 1."""
    machine = Machine()
    machine.init()
    if before == "Empty":
        machine.init()
    else:
        machine.add((7, 0), A)
        machine.end((7, 0), committed=before == "CompleteCommit")
        machine.write_markers()
    assert machine.state() == f"{before} 7/1"
    return machine


@pytest.mark.parametrize(
    ("before", "committed", "epoch", "answer"),
    [
        ("Empty", False, 0, "PRODUCER_FENCED"),
        ("Empty", False, 1, "7/2"),
        ("Empty", True, 0, "PRODUCER_FENCED"),
        ("Empty", True, 1, "INVALID_TXN_STATE"),
        ("CompleteAbort", False, 0, "7/1"),
        ("CompleteAbort", False, 1, "7/2"),
        ("CompleteAbort", True, 0, "INVALID_TXN_STATE"),
        ("CompleteAbort", True, 1, "INVALID_TXN_STATE"),
        ("CompleteCommit", False, 0, "INVALID_TXN_STATE"),
        ("CompleteCommit", False, 1, "7/2"),
        ("CompleteCommit", True, 0, "7/1"),
        ("CompleteCommit", True, 1, "INVALID_TXN_STATE"),
        ("CompleteCommit", True, 2, "PRODUCER_FENCED"),
    ],
)
def test_end_of_the_second_protocol(before: str, committed: bool, epoch: int, answer: str) -> None:
    """KIP-890: the epoch before the current one marks a retry, the current one a new request."""
    assert second_end(before).end((7, epoch), committed) == answer


def test_end_is_being_carried_out_in_the_second_protocol() -> None:
    machine = Machine()
    machine.init()
    machine.add((7, 0), A)
    assert machine.end((7, 0)) == "7/1"
    assert machine.end((7, 0)) == "CONCURRENT_TRANSACTIONS"
    assert machine.end((7, 0), committed=False) == "INVALID_TXN_STATE"
    assert machine.end((7, 1)) == "PRODUCER_FENCED"
    (markers,) = machine.write_markers()
    assert markers.marker.producer_epoch == 1


def test_abort_of_nothing_has_no_markers_to_write() -> None:
    machine = second_end("Empty")
    machine.end((7, 1), committed=False)
    (markers,) = machine.write_markers()
    assert (markers.partitions, machine.state()) == (frozenset(), "CompleteAbort 7/2")


def test_new_producer_aborts_what_the_old_one_left_open() -> None:
    machine = Machine()
    machine.init()
    machine.add((7, 0), A)
    assert machine.init() == "CONCURRENT_TRANSACTIONS"
    assert machine.state() == "PrepareAbort 7/1"
    assert machine.end((7, 0)) == "INVALID_TXN_STATE", "the zombie may not commit"
    (markers,) = machine.write_markers()
    assert (markers.marker.producer_epoch, markers.marker.committed) == (1, False)
    assert machine.init() == "7/2"
    assert machine.end((7, 0)) == "PRODUCER_FENCED"


def test_open_transaction_times_out() -> None:
    machine = Machine()
    machine.init(timeout_ms=50)
    machine.now_ms = 2000
    machine.add((7, 0), A)
    machine.wait_until(2050)
    assert machine.state() == "Ongoing 7/0"
    machine.wait_until(2051)
    assert machine.state() == "PrepareAbort 7/1"
    machine.write_markers()
    assert machine.state() == "CompleteAbort 7/1"
    assert machine.add((7, 0), A) is ErrorCode.PRODUCER_FENCED


def test_timeout_counts_from_the_first_partition_also_after_a_crash() -> None:
    machine = Machine()
    machine.init(timeout_ms=50)
    machine.add((7, 0), A)
    machine.now_ms = 1040
    machine.add((7, 0), B)
    machine.crash()
    machine.wait_until(1050)
    assert machine.state() == "Ongoing 7/0"
    machine.wait_until(1051)
    assert machine.state() == "PrepareAbort 7/1"


@pytest.mark.parametrize("ended", [None, True, False])
def test_unused_ids_are_forgotten(ended: bool | None) -> None:
    machine = Machine(TransactionConfig(id_expiration_ms=500))
    machine.init()
    if ended is not None:
        machine.add((7, 0), A)
        machine.end((7, 0), ended)
        machine.write_markers()
    machine.wait_until(1499)
    assert machine.state() != "-"
    machine.wait_until(1500)
    assert machine.state() == "-"
    assert machine.log[-1] == (TransactionLogKey(transactional_id="t"), None)


def test_open_transactions_are_not_forgotten() -> None:
    machine = Machine(TransactionConfig(id_expiration_ms=500))
    machine.init(timeout_ms=10_000)
    machine.add((7, 0), A)
    machine.wait_until(9000)
    assert machine.state() == "Ongoing 7/0"


@pytest.mark.parametrize("committed", [True, False])
def test_decided_end_is_carried_out_after_a_crash(committed: bool) -> None:
    machine = Machine()
    machine.init()
    machine.add((7, 0), A, B)
    machine.end((7, 0), committed)
    machine.crash()
    (markers,) = machine.write_markers()
    assert (markers.partitions, markers.marker.committed) == (frozenset({A, B}), committed)
    assert machine.state() == ("CompleteCommit 7/1" if committed else "CompleteAbort 7/1")
    assert machine.end((7, 0), committed) == "7/1", "the client asks again"


def test_delayed_markers_are_asked_for_again() -> None:
    machine = Machine(TransactionConfig(marker_retry_ms=20))
    machine.init()
    machine.add((7, 0), A)
    machine.end((7, 0))
    machine.markers.clear()
    machine.coordinator.markers_delayed("t", machine.now_ms)
    machine.wait_until(1019)
    assert not machine.markers
    machine.wait_until(1020)
    machine.write_markers()
    assert machine.state() == "CompleteCommit 7/1"


def test_late_news_of_markers_changes_nothing() -> None:
    machine = Machine()
    machine.init()
    appended = len(machine.log)
    machine.run(lambda c, now: c.markers_written("t", now))
    machine.run(lambda c, now: c.markers_written("unknown", now))
    assert len(machine.log) == appended
