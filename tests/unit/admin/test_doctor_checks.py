"""The check-up where little may be read: what is missing is said, what is known still counts."""

from __future__ import annotations

from fake_cluster import FakeCluster
from groups import Groups, classic_group, classic_member

from kgroup.admin.doctor import DOCTOR_CODES, examine
from kgroup.admin.findings import CODES
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.fetch import FetchRequest, FetchResponse


def cluster(committed: dict[str, int], ends: int) -> FakeCluster:
    """A group on a cluster that tells neither its settings nor the offsets topic."""
    fake = FakeCluster(topics={"orders": 2, "__consumer_offsets": 50})
    groups = Groups(fake).add(classic_group("g", classic_member("m1", "orders:0,1", "a")))
    groups.committed["g"] = committed
    groups.ends = {f"orders:{p}": ends for p in range(2)}
    denied = DescribeConfigsResult(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    fake.on(DescribeConfigsRequest, lambda node, request: DescribeConfigsResponse(results=(denied,)))
    fetch = FetchResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return fake.on(FetchRequest, lambda node, request: fetch)


def test_records_deleted_before_they_were_read() -> None:
    """The fake's logs are empty: they begin where they end."""
    found = examine(cluster({"orders:0": 2, "orders:1": 4}, ends=4).cluster(), "g")
    (diagnosis,) = [each for each in found.findings if each.code == "KG308"]
    assert diagnosis.evidence == ("orders-0: 2 records, from 2 to 4",)
    assert not found.healthy
    assert found.findings[0].severity == "error"


def test_what_may_not_be_read_is_skipped_and_said() -> None:
    found = examine(cluster({"orders:0": 4, "orders:1": 4}, ends=4).cluster(), "g")
    assert found.healthy
    assert found.history_since_ms is None
    told = " ".join(found.skipped)
    assert "offsets retention" in told
    assert "CLUSTER_AUTHORIZATION_FAILED" in told
    assert "history" in told


def test_codes_are_of_one_list() -> None:
    assert not CODES.keys() & DOCTOR_CODES.keys()
