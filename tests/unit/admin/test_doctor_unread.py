"""KG311, KG312: unread records that a transaction holds back, and some that are about to be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from kgroup.admin.diagnose.doctor import Checkup
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kgroup.protocol.messages.list_offsets import ListOffsetsRequest
from kgroup.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgroup.protocol.messages.list_transactions import TransactionState as Listed
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering, written
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import codes, examine, groups_of

MEMBER = Held("a", "orders:0,1")


def behind(times: Iterable[int], stable: Mapping[str, int] | None = None, committed: int = 2) -> FakeCluster:
    """A reader of orders-1 at offset 2 of 4, whose records were written at these seconds."""
    past = (1, [generation(1, [MEMBER])]), commits(2, {0: 4, 1: committed})
    fake = remembering(described(MEMBER), {"orders:0": 4, "orders:1": committed}, *past)
    groups = groups_of(fake)
    groups.starts = {"orders:0": 0, "orders:1": 0}
    groups.stable = dict(stable or {})
    return written(fake, {1: times})


def found(fake: FakeCluster, code: str, now_s: int = 3000) -> tuple[Checkup, list[str]]:
    checkup = examine(fake.cluster(), "g", now_ms=now_s * 1000, patience_s=0)
    return checkup, [each.message for each in checkup.findings if each.code == code]


@pytest.mark.parametrize("committed", [1, 2], ids=["a marker before it", "at the last stable offset"])
def test_a_reader_behind_a_transaction_that_does_not_end(committed: int) -> None:
    """It was healthy: nothing asked for the last stable offset."""
    fake = behind([1, 2, 3, 4], {"orders:1": 2}, committed)
    groups_of(fake).unreadable = {"orders:1"}
    checkup, told = found(fake, "KG311")
    assert checkup.verdict == "sick"
    assert told == [
        "readers of committed records are held back in partition orders-1 by a transaction that does not end"
    ]
    (held,) = [each for each in checkup.findings if each.code == "KG311"]
    assert held.evidence == (
        f"orders-1: committed {committed}, last stable offset 2, log end 4",
        "no coordinator lists its transaction: it hangs, or its owner may not be described",
    )


def test_one_unread_record_is_no_transaction() -> None:
    """The last stable offset of a log without one is its end, one behind what was committed: it was sick."""
    checkup, told = found(behind([1, 2, 3, 4], committed=3), "KG311", now_s=6)
    assert told == [] and "held-back" not in {each.status for each in checkup.statuses}


def test_its_producer_is_named() -> None:
    fake = behind([1, 2, 3, 4], {"orders:1": 2})
    listed = ListTransactionsResponse(transaction_states=(Listed(transactional_id="tx"),))
    fake.on(ListTransactionsRequest, lambda node, request: listed)
    state = TransactionState(
        transactional_id="tx",
        transaction_state="Ongoing",
        producer_id=7,
        transaction_start_time_ms=3000,
        topics=(TopicData(topic="orders", partitions=(1,)),),
    )
    described_ = DescribeTransactionsResponse(transaction_states=(state,))
    fake.on(DescribeTransactionsRequest, lambda node, request: described_)
    checkup, _ = found(fake, "KG311")
    (held,) = [each for each in checkup.findings if each.code == "KG311"]
    assert held.evidence[-1] == "transactional id 'tx', producer 7, Ongoing since 1970-01-01T00:00:03Z"


@pytest.mark.parametrize(
    ("times", "stable"),
    [([1, 2, 2990, 2995], {"orders:1": 2}), ([1, 2, 3, 4], {"orders:1": 3 + 1}), ([1, 2, 3, 4], {})],
    ids=["a young transaction", "nothing open", "read to the end of what is open"],
)
def test_no_transaction_or_a_young_one_is_no_finding(times: list[int], stable: dict[str, int]) -> None:
    assert "KG311" not in codes(found(behind(times, stable), "KG311")[0])


def retained(fake: FakeCluster, retention_ms: str, written_s: int) -> FakeCluster:
    """Let topics have a retention, and the first unread record be of a second."""

    def configs(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        setting = DescribeConfigsResourceResult(name="retention.ms", value=retention_ms)
        return DescribeConfigsResponse(
            results=tuple(
                DescribeConfigsResult(
                    resource_type=each.resource_type, resource_name=each.resource_name, configs=(setting,)
                )
                for each in request.resources
            )
        )

    offsets_log = fake.handlers[f.FetchRequest]

    def fetch(node: int, request: f.FetchRequest) -> object:
        if request.topics[0].topic != "orders":
            return offsets_log(node, request)
        asked = request.topics[0].partitions[0]
        batch = encode_batch(
            [LogRecord(b"k", b"v")], base_offset=asked.fetch_offset, timestamp_ms=written_s * 1000
        )
        part = f.PartitionData(partition_index=asked.partition, records=batch, high_watermark=4)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic="orders", partitions=(part,)),))

    return fake.on(DescribeConfigsRequest, configs).on(f.FetchRequest, fetch)  # type: ignore[arg-type]


@pytest.mark.parametrize(("retention_s", "soon"), [(3600, True), (36_000, False), (-1, False)])
def test_records_about_to_be_deleted_unread(retention_s: int, soon: bool) -> None:
    """80 records 50 minutes old in a topic that keeps an hour: nothing was said."""
    fake = retained(behind([1, 2, 3, 4]), str(retention_s * 1000 if retention_s > 0 else -1), 3)
    checkup, told = found(fake, "KG312")
    assert bool(told) == soon
    if soon:
        assert told == [
            "unread records of partition orders-1 are deleted in about 10 min, by the topic's retention"
        ]
        (going,) = [each for each in checkup.findings if each.code == "KG312"]
        assert going.severity == "warn"
        assert going.evidence == (
            "orders-1: the oldest unread record is of 1970-01-01T00:00:03Z, retention.ms is 3600000 (1h 00m)",
        )


def test_a_group_that_has_read_all_is_asked_nothing_more() -> None:
    fake = behind([1, 2, 3, 4], committed=4)
    found(fake, "KG312")
    asked = fake.requests(ListOffsetsRequest)
    assert not [each for each in asked if each.isolation_level]
    assert not [each for each in asked if each.topics[0].partitions[0].timestamp > 0]


def test_old_records_behind_young_ones_are_seen_too() -> None:
    """Written out of order: the first record of that age or younger lies before those that are unread."""
    fake = retained(behind([2999, 2999, 3, 3]), "3600000", 3)
    assert found(fake, "KG312")[1]
    assert not found(retained(behind([2999, 2999, 2998, 2998]), "3600000", 2998), "KG312")[1]
