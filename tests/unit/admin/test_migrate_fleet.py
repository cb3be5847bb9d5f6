"""The plans of many groups: each is the plan of one, and their number costs no requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kgroup.admin.migrate.consequences import software_of
from kgroup.admin.migrate.evidence import gather_all
from kgroup.admin.migrate.fleet import EFFORTS, plan_fleet
from kgroup.admin.migrate.models import UPGRADE, Evidence
from kgroup.admin.migrate.plan import plan_migration
from kgroup.admin.migrate.release import against_kafka_5
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode, KgroupError, SafetyRefused, Unreachable
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import (
    Groups,
    classic_group,
    classic_member,
    consumer_group,
    consumer_member,
    share_group,
)
from tests.unit.admin.test_migrate_plan import SETTINGS


def configs(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """What Kafka 4.3 answers: of brokers their settings, of groups their own."""
    results = []
    for each in request.resources:
        found = SETTINGS if each.resource_type == 4 else {"consumer.session.timeout.ms": "45000"}
        entries = tuple(DescribeConfigsResourceResult(name=k, value=v) for k, v in found.items())
        results.append(
            DescribeConfigsResult(
                resource_type=each.resource_type, resource_name=each.resource_name, configs=entries
            )
        )
    # Kafka puts what it may answer in front of what it may not: the order is not that of the request.
    return DescribeConfigsResponse(results=tuple(reversed(results)))


def brokers() -> Groups:
    """Two brokers of Kafka 4.3 without a group."""
    fake = FakeCluster(topics={"orders": 2, OFFSETS_TOPIC: 4})
    groups = Groups(fake)
    groups.ends = {f"{OFFSETS_TOPIC}:{number}": 0 for number in range(4)}
    fake.on(DescribeConfigsRequest, configs)
    level = FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1)
    features = ApiVersionsResponse(finalized_features_epoch=3, finalized_features=(level,))
    fake.on(ApiVersionsRequest, lambda node, request: features)
    none = f.FetchResponse(
        responses=(
            f.FetchableTopicResponse(
                topic=OFFSETS_TOPIC, partitions=(f.PartitionData(partition_index=0, high_watermark=0),)
            ),
        )
    )
    fake.on(f.FetchRequest, lambda node, request: none)
    return groups


def fleet(plain: int = 0) -> FakeCluster:
    """A group of each kind on two brokers, and so many plain ones more."""
    groups = brokers()
    fake = groups.fake
    java = classic_member("a", "orders:0", client_id="consumer-java-1")
    user_data = classic_member("b", "orders:0", user_data=b"12345678", client_id="rdkafka")
    groups.add(
        classic_group("java", java, classic_member("b", "orders:1", client_id="consumer-java-2")),
        replace(classic_group("sticky", user_data), protocol_data="cooperative-sticky"),
        replace(classic_group("custom", java), protocol_data="mine"),
        classic_group("connect", replace(java, member_metadata=b""), protocol_type="connect"),
        replace(classic_group("streams", java), protocol_data="stream"),
        classic_group("idle", state="Empty"),
        consumer_group("moved", consumer_member("m", "orders:0")),
        share_group("shared"),
        *(classic_group(f"plain-{n}", java) for n in range(plain)),
    )
    groups.committed["idle"] = {"orders:0": 1}
    known = [*groups.classic, *groups.consumer, *groups.share]
    fake.coordinator_of = {name: 1 + number % 2 for number, name in enumerate(known)}
    groups.listed = {"shared": "share"}
    return fake


KNOWN = ("java", "sticky", "custom", "connect", "streams", "idle", "moved", "shared", "absent")


def test_every_kind_of_group() -> None:
    found = plan_fleet(fleet().cluster(), KNOWN)
    told = {row.group_id: (row.verdict, row.effort, row.change) for row in found.rows}
    assert told == {
        "moved": ("already", "none", ()),
        "idle": ("ready", "convert", ()),
        "java": ("ready", "roll", ()),
        "custom": ("ready", "roll", ("assignor", "client")),
        "sticky": ("blocked", "client", ("assignor", "client")),
    }
    hints = {out.group_id: out.hint or "" for out in found.left_out}
    assert hints.keys() == {"connect", "streams", "shared"}
    assert "group.protocol=streams (KIP-1071)" in hints["streams"]
    assert "consumer.group.protocol=consumer" in hints["connect"]
    assert "share groups have one protocol" in hints["shared"]
    assert [(error.item, error.code) for error in found.errors] == [("absent", "GROUP_ID_NOT_FOUND")]
    efforts = [EFFORTS.index(row.effort) for row in found.rows]
    assert efforts == sorted(efforts)


def test_clients_are_named_as_far_as_their_ids_tell() -> None:
    found = {row.group_id: row for row in plan_fleet(fleet().cluster(), KNOWN).rows}
    assert found["java"].software == {"Java": 2}
    assert found["sticky"].software == {"librdkafka": 1}
    assert found["custom"].software == {}


@pytest.mark.parametrize(
    ("client_id", "software"),
    [
        ("consumer-g-1", "Java"),
        ("consumer-other-1", None),
        ("rdkafka", "librdkafka"),
        ("kafka-python-2.2.15", "kafka-python 2.2.15"),
        ("aiokafka-0.12.0", "aiokafka 0.12.0"),
        # somebody's own id: "0" is no version
        ("kafka-python-0", None),
        ("connector-consumer-lines-sink-12", "Kafka Connect"),
        ("connector-consumer-lines", None),
    ],
)
def test_what_a_client_id_gives_away(client_id: str, software: str | None) -> None:
    assert software_of("g", client_id) == software


@pytest.mark.parametrize("group_id", KNOWN)
def test_a_row_is_the_plan_of_its_group(group_id: str) -> None:
    """One truth: whatever the single plan says of a group, the fleet says too."""
    found = plan_fleet(fleet().cluster(), KNOWN)
    try:
        one = plan_migration(fleet().cluster(), group_id, UPGRADE)
    except SafetyRefused as error:
        assert group_id in str(error) and group_id in {out.group_id for out in found.left_out}
        return
    except KgroupError as error:
        assert [e.message for e in found.errors if e.item == group_id] == [error.message]
        return
    rows = {row.group_id: row for row in found.rows}
    if group_id not in rows:
        (out,) = [out for out in found.left_out if out.group_id == group_id]
        assert out.reason in {blocker.message for blocker in one.blockers}
        return
    row = rows[group_id]
    assert (row.verdict, row.state, row.type) == (one.verdict, one.state, one.type)
    assert [each.code for each in row.blockers] == [each.code for each in one.blockers]
    assert [each.message for each in row.unknown] == [each.message for each in one.unknowns]


def test_groups_cost_no_requests() -> None:
    """One pass: 500 more groups, the same requests to the same brokers."""
    counts = []
    for plain in (0, 500):
        fake = fleet(plain)
        plan_fleet(fake.cluster(), [*KNOWN[:-1], *(f"plain-{n}" for n in range(plain))])
        counts.append(Counter((node, type(message).__name__) for node, message, _ in fake.sent))
    assert counts[0] == counts[1]


def test_a_broker_that_does_not_answer_hides_its_groups_only() -> None:
    fake = fleet()

    def mute(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        if node == fake.coordinator_of["java"]:
            raise Unreachable("no answer in time")
        return configs(node, request)

    fake.on(DescribeConfigsRequest, mute)
    found = plan_fleet(fake.cluster(), KNOWN)
    here = {name for name in KNOWN[:-1] if fake.coordinator_of[name] == fake.coordinator_of["java"]}
    lost = {error.item for error in found.errors if error.code == "UNREACHABLE"}
    assert "java" in lost and lost <= here
    assert {row.group_id for row in found.rows} | {out.group_id for out in found.left_out} >= set(
        KNOWN[:-1]
    ) - here


def test_settings_of_one_group_may_be_hidden() -> None:
    """Rights on groups are given one by one: what is denied of one is known of the others."""

    def some(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
        told = configs(node, request).results
        return DescribeConfigsResponse(
            results=tuple(
                replace(each, error_code=denied, configs=()) if each.resource_name == "java" else each
                for each in told
            )
        )

    fake = fleet().on(DescribeConfigsRequest, some)
    found = gather_all(fake.cluster(), KNOWN)
    hidden = {name for name, each in found.items() if isinstance(each, Evidence) and each.own_error}
    assert hidden == {"java"}


def against(fake: FakeCluster, *groups: str) -> dict[str, str]:
    cluster = fake.cluster()
    checks = against_kafka_5(cluster, plan_fleet(cluster, groups))
    return {check.code: check.status for check in checks}


def test_what_stands_against_kafka_5() -> None:
    assert against(fleet(), *KNOWN[:-1]) == {
        "consumer_protocol": "ok",
        "groups_blocked": "block",
        "client_settings": "warn",
        "groups_ready": "warn",
        "groups_moved": "ok",
        "groups_left_out": "info",
    }
    assert against(fleet(), "moved") == {"consumer_protocol": "ok", "groups_moved": "ok"}


def test_a_broker_without_the_protocol_stands_against_kafka_5() -> None:
    """Whether or not a group lies there today; and one that does not answer is unknown, not fine."""
    fake = fleet()
    fake.served[68] = None
    (block,) = [status for code, status in against(fake, "moved").items() if code == "consumer_protocol"]
    assert block == "block"
    fake = fleet()

    def mute(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        if node != fake.coordinator_of["moved"]:
            raise Unreachable("no answer in time")
        return configs(node, request)

    fake.on(DescribeConfigsRequest, mute)
    cluster = fake.cluster()
    checks = against_kafka_5(cluster, plan_fleet(cluster, ["moved"]))
    assert {(c.status, c.reason) for c in checks if c.code == "consumer_protocol"} == {
        ("ok", None),
        ("unknown", "UNREACHABLE"),
    }
