"""What rights do beyond one request: sessions, patterns, changes of rules, and who is not asked for any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.handlers import ALL
from kgroup.broker.rights import guarded, rule_of
from kgroup.domain import uuid_bytes
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kgroup.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kgroup.protocol.messages.describe_acls import DescribeAclsRequest
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from kgroup.protocol.streams_records import Subtopology, TopicInfo
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import ANONYMOUS, Principal
from tests.unit.broker.brokers import create_topic

BOB = Principal("User", "bob")
ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
NEVER = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)


def rule(
    operation: Operation, kind: ResourceType, name: str, permission: Permission = Permission.ALLOW
) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, str(BOB), "*", operation, permission)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(None, config=ON, clock=ManualClock(), seed=1, offsets_partitions=1)


@pytest.fixture
def asked(cluster: Cluster) -> EmbeddedTransport:
    """The cluster as bob comes to it."""
    transport = EmbeddedTransport(cluster, BOB)
    for name in ("seen", "hidden"):
        create_topic(EmbeddedTransport(cluster), name)
    return transport


@pytest.fixture
def allow(cluster: Cluster) -> Callable[..., None]:
    assert cluster.acls is not None
    store = cluster.acls
    return lambda *what: store.add([rule(*what)])


def test_every_api_that_is_served_has_its_rule() -> None:
    served = {api.key for api in ALL}
    assert {registry.name_of(key) for key in served if rule_of(key) is None} == {
        "ApiVersions",
        "SaslAuthenticate",
        "SaslHandshake",
    }


def test_without_an_authorizer_nothing_stands_before_a_handler() -> None:
    assert guarded(Cluster(None), ALL) == ALL


def test_who_has_the_cluster_in_his_process_is_asked_for_no_right(
    cluster: Cluster, asked: EmbeddedTransport
) -> None:
    request = MetadataRequest(topics=None)
    everything = {t.name for t in EmbeddedTransport(cluster).request(None, request).topics}  # type: ignore[attr-defined]
    assert {"seen", "hidden"} <= everything
    assert asked.request(None, request).topics == ()  # type: ignore[attr-defined]


def test_the_coordinator_of_a_group_is_named_to_who_may_describe_it(
    asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    request = FindCoordinatorRequest(coordinator_keys=("g", "h"), key_type=0)
    allow(Operation.DESCRIBE, ResourceType.GROUP, "g")
    answer: Any = asked.request(None, request, min_version=4)
    assert {each.key: each.error_code for each in answer.coordinators} == {
        "g": ErrorCode.NONE,
        "h": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }


def test_a_group_named_twice_is_refused_only_where_a_right_is_missing(
    asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    allow(Operation.DESCRIBE, ResourceType.GROUP, "g")
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "seen")
    groups = tuple(
        OffsetFetchRequestGroup(
            group_id=group, topics=(OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
        )
        for group, topic in (("g", "seen"), ("other", "seen"), ("g", "hidden"))
    )
    answer: Any = asked.request(0, OffsetFetchRequest(groups=groups), max_version=9)
    found = [
        (g.group_id, g.error_code, [(t.name, p.error_code) for t in g.topics for p in t.partitions])
        for g in answer.groups
    ]
    assert found == [
        ("g", ErrorCode.NONE, [("seen", ErrorCode.NONE)]),
        ("other", ErrorCode.GROUP_AUTHORIZATION_FAILED, []),
        ("g", ErrorCode.NONE, [("hidden", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]),
    ]


def test_a_rule_acts_from_the_next_request_on(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="seen"),))

    def code() -> int:
        found: Any = asked.request(None, request)
        return int(found.topics[0].error_code)

    assert code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "seen")
    assert code() == ErrorCode.NONE
    assert cluster.acls is not None
    cluster.acls.add([rule(Operation.DESCRIBE, ResourceType.TOPIC, "seen", Permission.DENY)])
    assert code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.acls.remove(cluster.acls.authorizer.acls)
    assert code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_fetch_session_is_looked_at_every_time(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    ids = {name: topic.topic_id for name, topic in cluster.catalog.topics.items()}

    def fetch(session: int, epoch: int, *names: str) -> Any:
        topics = tuple(FetchTopic(topic_id=ids[name], partitions=(NEVER,)) for name in names)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=epoch, topics=topics
        )
        return asked.request(None, request)

    def codes(found: Any) -> dict[bytes, int]:
        return {t.topic_id: t.partitions[0].error_code for t in found.responses}

    opened = fetch(0, 0, "seen", "hidden")
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert codes(opened) == {ids["seen"]: denied, ids["hidden"]: denied}
    allow(Operation.READ, ResourceType.TOPIC, "seen")
    assert codes(fetch(opened.session_id, 1)) == {ids["seen"]: 0, ids["hidden"]: denied}
    assert cluster.acls is not None
    cluster.acls.remove(cluster.acls.authorizer.acls)
    assert codes(fetch(opened.session_id, 2)) == {ids["seen"]: denied, ids["hidden"]: denied}


def test_a_fetch_waits_for_what_may_be_read(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    allow(Operation.READ, ResourceType.TOPIC, "seen")
    ids = {name: topic.topic_id for name, topic in cluster.catalog.topics.items()}
    topics = tuple(FetchTopic(topic_id=ids[n], partitions=(NEVER,)) for n in ("seen", "hidden"))
    before = cluster.clock.now_ms()
    found: Any = asked.request(None, FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics))
    assert cluster.clock.now_ms() == before + 500
    assert [t.partitions[0].error_code for t in found.responses] == [0, 29]


def test_a_topic_fetched_before_it_was_there_is_not_read_for_that(
    cluster: Cluster, asked: EmbeddedTransport
) -> None:
    """A session opened with an id nobody knew finds the topic later, and asks for its rights then."""
    later = uuid_bytes("AAAAAAAAAAAAAAAAAAAAAQ")
    topics = (FetchTopic(topic_id=later, partitions=(NEVER,)),)
    opened: Any = asked.request(
        None, FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=0, topics=topics)
    )
    assert opened.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    hidden = cluster.catalog.topics["hidden"]
    cluster.create_topic(replace(hidden, name="later", topic_id=later))
    again = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=opened.session_id, session_epoch=1)
    found: Any = asked.request(None, again)
    assert found.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_pattern_finds_only_what_may_be_described(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    allow(Operation.READ, ResourceType.GROUP, "g")
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "seen")
    epoch = 0
    for _ in range(3):
        beat = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex=".*e.*" if not epoch else None,
            topic_partitions=() if not epoch else None,
        )
        found: Any = asked.request(None, beat)
        assert found.error_code == 0
        epoch = found.member_epoch
        asked.run_until(cluster.clock.now_ms() + 1000)
    described: Any = EmbeddedTransport(cluster).request(None, ConsumerGroupDescribeRequest(group_ids=("g",)))
    (member,) = described.groups[0].members
    assert [held.topic_name for held in member.target_assignment.topic_partitions] == ["seen"]


def test_a_consumer_group_is_hidden_whose_topics_may_not_all_be_described(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=("hidden", "seen"),
        topic_partitions=(),
    )
    EmbeddedTransport(cluster).request(None, beat)

    def answer() -> Any:
        found: Any = asked.request(None, ConsumerGroupDescribeRequest(group_ids=("g",)))
        return found.groups[0]

    assert (answer().error_code, answer().members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, ())
    allow(Operation.DESCRIBE, ResourceType.GROUP, "g")
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "seen")
    hidden = answer()
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    assert "not authorized to describe" in hidden.error_message
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "hidden")
    assert [member.member_id for member in answer().members] == ["m"]


def test_a_streams_group_needs_its_topics_and_may_not_create_what_it_may_not(
    cluster: Cluster, asked: EmbeddedTransport, allow: Callable[..., None]
) -> None:
    part = Subtopology(
        subtopology_id="0",
        source_topics=("seen",),
        state_changelog_topics=(TopicInfo(name="app-changelog"),),
    )
    beat = StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        topology=Topology(epoch=0, subtopologies=(part,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        client_tags=(),
    )

    def answer() -> Any:
        return asked.request(None, beat)

    assert answer().error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    allow(Operation.READ, ResourceType.GROUP, "app")
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "seen")
    assert answer().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(Operation.DESCRIBE, ResourceType.TOPIC, "app-changelog")
    told = answer()
    assert told.error_code == ErrorCode.NONE
    assert any("Unauthorized to CREATE on topics app-changelog." in one.status_detail for one in told.status)
    assert "app-changelog" not in cluster.catalog.topics
    described: Any = asked.request(None, StreamsGroupDescribeRequest(group_ids=("app", "other")))
    codes = {group.group_id: group.error_code for group in described.groups}
    assert codes == {"app": ErrorCode.NONE, "other": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    allow(Operation.CREATE, ResourceType.TOPIC, "app-changelog")
    answer()
    assert "app-changelog" in cluster.catalog.topics
    assert cluster.acls is not None
    cluster.acls.add([rule(Operation.DESCRIBE, ResourceType.TOPIC, "app-changelog", Permission.DENY)])
    described = asked.request(None, StreamsGroupDescribeRequest(group_ids=("app",)))
    (hidden,) = described.groups
    assert (hidden.error_code, hidden.topology) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


@pytest.mark.parametrize(("topics", "hangs_up"), [(("seen",), False), (("seen", "hidden"), True)])
def test_a_refusal_of_what_wants_no_answer_ends_the_connection(
    asked: EmbeddedTransport, allow: Callable[..., None], topics: tuple[str, ...], hangs_up: bool
) -> None:
    from kgroup.broker.call import Call, NoResponse
    from tests.unit.broker.test_produce_fetch import batch

    allow(Operation.WRITE, ResourceType.TOPIC, "seen")
    data = (PartitionProduceData(index=0, records=batch(b"v")),)
    sent = tuple(TopicProduceData(name=name, partition_data=data) for name in topics)
    body = ProduceRequest(acks=0, timeout_ms=1000, topic_data=sent)
    answer = asked.dispatcher.handle(Call(body, 12, principal=BOB, client_host="/127.0.0.1"))
    assert answer is (NoResponse.CLOSE_CONNECTION if hangs_up else NoResponse.NO_OP)


def creation(name: str) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=(
            AclCreation(
                resource_type=2,
                resource_name=name,
                principal="User:x",
                host="*",
                operation=3,
                permission_type=3,
            ),
        )
    )


EVERYTHING = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


def _retention(kind: int, name: str, value: str) -> AlterConfigsResource:
    change = AlterableConfig(name="log.retention.ms", config_operation=0, value=value)
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))


def test_without_a_right_no_setting_of_a_broker_changes(cluster: Cluster, asked: EmbeddedTransport) -> None:
    """The broker looks at them before the right is looked at: that look must change nothing."""
    answer: Any = asked.request(None, IncrementalAlterConfigsRequest(resources=(_retention(4, "0", "7"),)))
    assert [each.error_code for each in answer.responses] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert not cluster.catalog.broker_configs


def test_a_right_that_is_missing_is_said_of_each_broker_by_itself(asked: EmbeddedTransport) -> None:
    """Whatever is wrong with the settings of another in the same request."""
    wrong, right = _retention(4, "0", "none"), _retention(4, "", "7")
    answer: Any = asked.request(None, IncrementalAlterConfigsRequest(resources=(wrong, right)))
    assert {each.resource_name: each.error_code for each in answer.responses} == {
        "0": ErrorCode.INVALID_REQUEST,
        "": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }


def test_what_is_named_twice_is_a_wrong_request_with_or_without_the_right(asked: EmbeddedTransport) -> None:
    twice = (_retention(4, "0", "7"),) * 2
    answer: Any = asked.request(None, IncrementalAlterConfigsRequest(resources=twice))
    assert {each.error_code for each in answer.responses} == {ErrorCode.INVALID_REQUEST}


def test_without_an_authorizer_there_is_nothing_to_ask_for_rules() -> None:
    transport = EmbeddedTransport(Cluster(None))
    wanted = DeleteAclsRequest(filters=(DeleteAclsFilter(**EVERYTHING),))
    found: Any = [
        transport.request(None, creation("t")).results[0],  # type: ignore[attr-defined]
        transport.request(None, DescribeAclsRequest(**EVERYTHING)),
        transport.request(None, wanted).filter_results[0],  # type: ignore[attr-defined]
    ]
    assert {answer.error_code for answer in found} == {ErrorCode.SECURITY_DISABLED}


def test_rules_made_by_request_are_there_after_a_restart(tmp_path: Path) -> None:
    first = EmbeddedTransport(Cluster(tmp_path, config=ON, offsets_partitions=1))
    first.request(None, creation("kept"))
    first.request(None, creation("gone"))
    found: Any = first.request(
        None, DeleteAclsRequest(filters=(DeleteAclsFilter(**EVERYTHING, resource_name_filter="gone"),) * 2)
    )
    assert [[acl.resource_name for acl in each.matching_acls] for each in found.filter_results] == [
        ["gone"]
    ] * 2
    first.close()
    again = EmbeddedTransport(Cluster(tmp_path, config=ON))
    listed: Any = again.request(None, DescribeAclsRequest(**EVERYTHING))
    assert [resource.resource_name for resource in listed.resources] == ["kept"]
    again.close()


def test_numbers_nobody_knows_are_refused(cluster: Cluster) -> None:
    transport = EmbeddedTransport(cluster, ANONYMOUS)
    found: Any = transport.request(None, DescribeAclsRequest(**{**EVERYTHING, "operation": 77}))
    assert found.error_code == ErrorCode.INVALID_REQUEST
    wrong = DeleteAclsFilter(**{**EVERYTHING, "resource_type_filter": 0})
    deleted: Any = transport.request(None, DeleteAclsRequest(filters=(wrong,)))
    assert deleted.filter_results[0].error_code == ErrorCode.INVALID_REQUEST
