"""Messages and records are Kafka's field by field, and what a release adds is found."""

from __future__ import annotations

import copy

import pytest

from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.registry import KAFKA_APIS, request_class, response_class
from tests.house.test_kafka_differences import answers

from .__main__ import unknown
from .between import differences_between
from .release import Release
from .wire import Spec, differences

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900), pytest.mark.xdist_group("kafka_release")]
ELSEWHERE = (
    "share",
    "Share",
    "DelegationToken",
    "AlterReplicaLogDirs",
    "DescribeLogDirs",
    "PartitionReassignments",
    "AlterClientQuotas",
    "DescribeQuorum",
)
"""Of share groups, and of administration that kgroup leaves to Kafka's tools (docs/not-built.md)."""


@pytest.fixture(scope="module")
def kafka() -> Release:
    return Release("4.3.1")


def test_everything_that_concerns_groups_in_4_3_1_is_known(kafka: Release) -> None:
    found = [line for line in unknown(kafka) if not line.startswith(("API ", "feature "))]
    messages = {cls.__name__ for key in KAFKA_APIS for cls in (request_class(key), response_class(key))}
    assert [line for line in found if "share" not in line.lower() or line.split()[0] in messages] == [
        # A tag that is written only where it has a value, since 4.4.
        (
            "StreamsGroupMetadataValue v0: nothing, here stored_description_topology_epoch "
            "(int32, tag 2, default -1)"
        ),
        "InitProducerIdRequest v6: Enable2Pc (bool), KeepPreparedTxn (bool)",
        "InitProducerIdResponse v6: OngoingTxnProducerId (int64), OngoingTxnProducerEpoch (int16)",
        "error GROUP_DELETION_FAILED: not there, here 134",
        "error STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: not there, here 135",
        "error CONTROLLER_ID_NOT_REGISTERED: not there, here 136",
        "broker setting group.consumer.regex.refresh.interval.ms: not there, here 600000",
    ]


def test_messages_and_records_of_share_groups_are_those_of_4_4_0() -> None:
    found = [line for line in unknown(Release("4.4.0")) if "share" in line.lower()]
    assert [
        line for line in found if not line.startswith(("feature ", "broker setting ", "group setting "))
    ] == []


def test_each_difference_from_4_3_1_to_4_4_0_has_an_answer(kafka: Release) -> None:
    """tests/house/test_kafka_differences.py holds the answers to what is built, and to not-built."""
    assert list(answers()) == list(differences_between(kafka, Release("4.4.0")))


def test_a_planted_difference_between_releases_is_found(kafka: Release) -> None:
    """A field taken away, a default that changed, an error and a record that are gone."""
    later = copy.copy(kafka)
    later.requests, later.records = copy.deepcopy(kafka.requests), dict(kafka.records)
    later.declared = copy.deepcopy(kafka.declared)
    del later.requests[TxnOffsetCommitRequest.API][0]["fields"][2]
    later.declared["group setting"]["consumer.session.timeout.ms"] = "1"
    del later.declared["error"]["UNKNOWN_MEMBER_ID"], later.records["OffsetCommitKey"]
    assert list(differences_between(kafka, kafka)) == []
    assert list(differences_between(kafka, later)) == [
        *(f"TxnOffsetCommitRequest v{version}: without ProducerId" for version in range(6)),
        "record OffsetCommitKey: gone",
        "error UNKNOWN_MEMBER_ID: gone",
        "group setting consumer.session.timeout.ms: 1, before 45000 [1,...]",
    ]


PLANTED = {
    "a field of later versions": ("Name", {"versions": "3+"}, "v0: Partitions"),
    "type": ("GroupId", {"type": "int64"}, "v0: GroupId (int64), here group_id (string)"),
    "null": (
        "MemberId",
        {"nullableVersions": "3+"},
        "v3: MemberId (string or null), here member_id (string)",
    ),
}


@pytest.mark.parametrize(("place", "change", "expected"), PLANTED.values(), ids=PLANTED)
def test_a_planted_difference_is_found(kafka: Release, place: str, change: Spec, expected: str) -> None:
    spec = copy.deepcopy(kafka.requests[TxnOffsetCommitRequest.API][0])
    fields = [*spec["fields"], *spec["fields"][-1]["fields"]]
    next(field for field in fields if field["name"] == place).update(change)
    assert list(differences(kafka.requests[TxnOffsetCommitRequest.API][0], TxnOffsetCommitRequest)) == []
    assert expected in next(differences(spec, TxnOffsetCommitRequest))


def test_a_field_taken_away_is_found(kafka: Release) -> None:
    spec = copy.deepcopy(kafka.requests[TxnOffsetCommitRequest.API][0])
    del spec["fields"][0]
    assert next(differences(spec, TxnOffsetCommitRequest)) == (
        "TxnOffsetCommitRequest v0: ProducerId (int64), here group_id (string)"
    )
