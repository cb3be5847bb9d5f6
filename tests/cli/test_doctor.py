"""`kgroup doctor`: findings with what shows them; only errors make a bad verdict."""

import itertools

import jsonschema
import pytest
from positions import commit_fully

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for

_numbers = itertools.count()


@pytest.fixture
def group(cluster):
    name = f"doctor-{next(_numbers)}"
    cluster.create_topic(name, 2)
    return name


def examined(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for("doctor"))
    (told,) = ran.document["data"]["groups"]
    assert told["skipped"] == []
    return told, {finding["code"]: finding for finding in told["findings"]}


def test_a_healthy_group(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0, 1]})
    told, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert (told["healthy"], found) == (True, {})
    assert "healthy" in on_cluster("doctor", group).out


def test_partitions_nobody_reads_are_an_error(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0]})
    told, found = examined(on_cluster("doctor", group, "-o", "json"), ExitCode.BAD_VERDICT)
    assert not told["healthy"]
    assert found["KG104"]["severity"] == "error"
    assert "NOT HEALTHY" in on_cluster("doctor", group).out


def test_who_is_away_and_when_it_expires(on_cluster, cluster, group):
    member = cluster.consumer_member(group, group, "s-0")
    cluster.leave_for_now(group, member, "s-0")
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    (fact,) = found["KG103"]["evidence"]
    assert fact.startswith("s-0 left at ")
    assert "its session ends at " in fact


def test_an_empty_group_and_when_its_offsets_expire(on_cluster, cluster, group):
    commit_fully(cluster, group, group, {0: (0, -1, "")})
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert "offsets.retention.minutes" in found["KG304"]["evidence"][0]


def test_an_instance_id_that_changes_hands(on_cluster, cluster, group):
    from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
    from kgroup.protocol.subscription import Subscription

    cluster.classic_group(group, group, {"i-0": [0, 1]})
    for _ in range(3):
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id="i-0",
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(name="range", metadata=Subscription(topics=(group,)).encode(1)),
            ),
        )
        assert cluster.transport.request(None, request).error_code == 0
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert "i-0 was taken over 3 times" in found["KG110"]["message"]


def test_several_groups_and_unknown_ones(on_cluster, cluster, group):
    commit_fully(cluster, group, group, {0: (0, -1, "")})
    assert on_cluster("doctor", group, "never-was").code == ExitCode.PARTIAL
    assert on_cluster("doctor", "never-was").code == ExitCode.NOT_FOUND


def test_its_codes_are_explained(kgroup):
    out = kgroup("explain", "KG308").out
    assert "kgroup doctor GROUP" in out
