"""What `doctor --rights` makes of what brokers tell: held, missing or not known; nothing is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.read.visibility import NOT_ASKED
from kgroup.admin.rights.needs import (
    COMMANDS,
    WHEN_CONSUMER,
    WHEN_EMPTY,
    WHEN_EMPTY_OR_CONSUMER,
    WHEN_GIVEN_UP,
    WHEN_LEFT,
    WHEN_LIVE,
    WHEN_SHARED,
)
from kgroup.admin.rights.report import Ability, Asked, abilities, kafka_acls
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import create_topics as ct
from kgroup.protocol.messages import describe_configs as dc
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import incremental_alter_configs as ia
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.security.rights import (
    CLUSTER,
    DESCRIBE,
    GROUP,
    OPERATION_CODES,
    READ,
    TOPIC,
    Right,
    lacking,
    on_cluster,
    on_group,
    on_topic,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member


def bits(*operations: str) -> int:
    return sum(1 << OPERATION_CODES[operation] for operation in operations)


class Authorizer:
    """A cluster with the group g, which reads orders, whose brokers tell these rights of its principal."""

    def __init__(self, *held: Right, tells: bool = True) -> None:
        self.held = set(held)
        self.tells = tells
        self.fake = FakeCluster(topics={"orders": 1, OFFSETS_TOPIC: 4})
        groups = Groups(self.fake).add(classic_group("g", classic_member("m1", "orders:0", "a")))
        groups.committed["g"] = {"orders:0": 0}
        self._described = self.fake.handlers[dg.DescribeGroupsRequest]
        self._metadata = self.fake.handlers[MetadataRequest]
        self.fake.cluster_operations = self.bits(CLUSTER, "") if self.holds(on_cluster(DESCRIBE)) else 0
        self.fake.on(dg.DescribeGroupsRequest, self.groups).on(MetadataRequest, self.topics)
        self.fake.on(dc.DescribeConfigsRequest, self.configs).on(ct.CreateTopicsRequest, self.created)
        self.fake.on(ia.IncrementalAlterConfigsRequest, self.altered)

    def holds(self, right: Right) -> bool:
        anywhere = replace(right, name="*") if right.name else right
        brings = {READ, "Write", "Delete", "Alter"} if right.operation == DESCRIBE else set()
        return any(
            replace(each, operation=operation) in self.held
            for each in (right, anywhere)
            for operation in {right.operation, *brings}
        )

    def bits(self, resource: str, name: str) -> int:
        if not self.tells:
            return NOT_ASKED
        return bits(*(o for o in OPERATION_CODES if self.holds(Right(o, resource, name))))

    def groups(self, node: int, request: dg.DescribeGroupsRequest) -> Message:
        allowed = tuple(g for g in request.groups if self.holds(on_group(DESCRIBE, g)))
        told = self._described(node, replace(request, groups=allowed)).groups if allowed else ()  # type: ignore[attr-defined]
        denied = (
            dg.DescribedGroup(group_id=g, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for g in request.groups
            if g not in allowed
        )
        operations = request.include_authorized_operations
        # Before version 6 a group that is not there is a dead one.
        known = (
            replace(g, error_code=0, authorized_operations=self.bits(GROUP, g.group_id))
            for g in told
            if operations
        )
        return dg.DescribeGroupsResponse(groups=(*(known if operations else told), *denied))

    def topics(self, node: int, request: MetadataRequest) -> Message:
        assert not request.allow_auto_topic_creation, "a probe makes no topic"
        answer = self._metadata(node, request)
        assert isinstance(answer, MetadataResponse)
        told = []
        for topic in answer.topics:
            if self.holds(on_topic(DESCRIBE, topic.name or "")):
                bits = (
                    self.bits(TOPIC, topic.name or "")
                    if request.include_topic_authorized_operations
                    else NOT_ASKED
                )
                told.append(replace(topic, topic_authorized_operations=bits))
            else:
                denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                told.append(replace(topic, error_code=denied, partitions=()))
        return replace(answer, topics=tuple(told))

    def configs(self, node: int, request: dc.DescribeConfigsRequest) -> Message:
        (asked,) = request.resources
        kind, code = {
            32: (Right("DescribeConfigs", GROUP, asked.resource_name), ErrorCode.GROUP_AUTHORIZATION_FAILED),
            4: (on_cluster("DescribeConfigs"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        }[asked.resource_type]
        result = dc.DescribeConfigsResult(error_code=0 if self.holds(kind) else code)
        return dc.DescribeConfigsResponse(results=(result,))

    def created(self, node: int, request: ct.CreateTopicsRequest) -> Message:
        assert request.validate_only, "a probe makes no topic"
        (topic,) = request.topics
        code = 0 if self.holds(on_topic("Create", topic.name)) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return ct.CreateTopicsResponse(topics=(ct.CreatableTopicResult(name=topic.name, error_code=code),))

    def altered(self, node: int, request: ia.IncrementalAlterConfigsRequest) -> Message:
        assert request.validate_only, "a probe changes no setting"
        (asked,) = request.resources
        assert asked.configs == ()
        held = self.holds(Right("AlterConfigs", GROUP, asked.resource_name))
        code = 0 if held else ErrorCode.GROUP_AUTHORIZATION_FAILED
        return ia.IncrementalAlterConfigsResponse(
            responses=(ia.AlterConfigsResourceResponse(error_code=code),)
        )

    def ability(self, command: str, asked: Asked | None = None) -> Ability:
        (found,) = abilities(self.fake.cluster(), [command], asked or Asked("g"))
        return found


SEEN = (on_group(DESCRIBE, "g"), on_topic(DESCRIBE, "orders"))


def test_a_command_whose_rights_are_there_is_usable() -> None:
    found = Authorizer(*SEEN).ability("describe")
    assert (found.usable, found.missing, found.unknown) == (True, (), ())
    assert {wanted.right: wanted.held for wanted in found.needs} == dict.fromkeys(SEEN, True)


def test_what_is_missing_is_named() -> None:
    found = Authorizer(*SEEN).ability("remove-members")
    assert (found.usable, found.missing) == (False, (on_group(READ, "g"),))


def test_without_any_right_every_command_is_out_of_reach() -> None:
    fake = Authorizer().fake
    found = abilities(fake.cluster(), COMMANDS, Asked())
    assert [each.command for each in found if each.usable is not False] == []
    assert all(each.missing for each in found)


def test_with_every_right_every_command_is_usable() -> None:
    everything = [Right(o, kind, "*") for o in OPERATION_CODES for kind in (GROUP, TOPIC)]
    cluster = [on_cluster(o) for o in OPERATION_CODES]
    found = abilities(Authorizer(*everything, *cluster).fake.cluster(), COMMANDS, Asked("g", "new", "orders"))
    assert [each.command for each in found if each.usable is not True] == []


def test_a_right_to_one_group_is_none_to_every_group() -> None:
    bob = Authorizer(*SEEN, on_topic(DESCRIBE, "*"))
    assert bob.ability("list").missing == (on_group(DESCRIBE, "*"),)
    assert bob.ability("describe", Asked()).missing == (on_group(DESCRIBE, "*"),)


def test_what_brokers_do_not_tell_is_not_known() -> None:
    """That the group may be described shows; whether it may be read as well nobody says."""
    found = Authorizer(on_group(READ, "g"), on_topic(DESCRIBE, "*"), tells=False).ability("remove-members")
    assert (found.usable, found.missing, found.unknown) == (None, (), (on_group(READ, "g"),))


def test_old_brokers_tell_nothing() -> None:
    """DescribeGroups and Metadata before Kafka 2.3 have no authorized operations."""
    bob = Authorizer(*SEEN)
    bob.fake.served |= {15: range(3), 3: range(8)}
    assert bob.ability("describe").usable is None


def test_no_right_to_settings_of_groups_is_missing_where_brokers_have_none() -> None:
    """Kafka 3.9 reports no such operation of a group: `doctor` was said not to be usable, for lack of it."""
    for served, missing in ((range(7), True), (range(6), False)):
        bob = Authorizer(*SEEN)
        bob.fake.served |= {15: served}
        lacks = bob.ability("config get").missing
        assert any(r.resource == GROUP and "Configs" in r.operation for r in lacks) == missing, lacks


def test_a_cluster_that_does_not_answer_is_no_lack_of_rights() -> None:
    bob = Authorizer(*SEEN)

    def broken(node: int, request: Message) -> Message:
        raise OutcomeUnknown("b1:9092 broke off")

    bob.fake.on(dg.DescribeGroupsRequest, broken)
    with pytest.raises(Unreachable):
        bob.ability("describe")


def test_needs_depend_on_the_state_of_the_group() -> None:
    conditions = {need.when for needs in COMMANDS.values() for need in needs.needs if need.when}
    of_share_groups = {WHEN_GIVEN_UP, WHEN_SHARED}
    assert (
        conditions
        == {WHEN_CONSUMER, WHEN_EMPTY, WHEN_LEFT, WHEN_LIVE, WHEN_EMPTY_OR_CONSUMER} | of_share_groups
    )
    live = Authorizer(*SEEN, on_topic(READ, OFFSETS_TOPIC))
    assert live.ability("doctor").usable is True
    unseen = Authorizer(on_topic(READ, OFFSETS_TOPIC))
    assert on_cluster("DescribeConfigs") in {wanted.right for wanted in unseen.ability("doctor").needs}


def test_lines_for_kafka_acls_are_quoted() -> None:
    rights = (on_group(READ, "pay's group"), on_topic(DESCRIBE, "*"), on_cluster(DESCRIBE))
    to_bob = "kafka-acls --bootstrap-server b:9092 --add --allow-principal User:bob --operation"
    assert kafka_acls(rights, "User:bob", "b:9092") == (
        f"""{to_bob} Read --group 'pay'"'"'s group'""",
        f"{to_bob} Describe --topic '*'",
        f"{to_bob} Describe --cluster",
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "this principal lacks Read on Group g"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "this principal lacks Describe on Topic t"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal lacks a right on the cluster"),
        (ErrorCode.UNKNOWN_MEMBER_ID, None),
    ],
)
def test_a_refusal_in_words(code: int, text: str | None) -> None:
    assert lacking(code, on_group(READ, "g"), on_topic(DESCRIBE, "t")) == text
