"""Requests about streams groups, the users of SCRAM and settings that are replaced or listed.

They are behind the others, whose rule sets go by turns.
"""

from __future__ import annotations

from kgroup.protocol.codec import Message
from kgroup.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kgroup.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kgroup.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kgroup.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgroup.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from kgroup.protocol.streams_records import Subtopology, TopicInfo

from .cases import GROUP, TOPIC, Case, Names, O, each, on, on_cluster
from .grants import Right
from .group_cases import insist
from .topic_cases import ALTERED, OF_BROKER, alter_configs, alter_nonsense
from .world import World

CLIENT_METRICS = 16
SHA_256 = 1


def joining(group: str, source: str, changelog: str | None) -> StreamsGroupHeartbeatRequest:
    """A first heartbeat, of an application that reads one topic and may keep a store."""
    stores = () if changelog is None else (TopicInfo(name=changelog),)
    part = Subtopology(subtopology_id="0", source_topics=(source,), state_changelog_topics=stores)
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=f"member-of-{group}",
        rebalance_timeout_ms=300_000,
        process_id="process",
        topology=Topology(epoch=0, subtopologies=(part,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
    )


def streams_join(world: World, names: Names) -> Message:
    return joining(names.group, names.a, names.b)


def streams_join_creating(world: World, names: Names) -> Message:
    return joining(names.group, names.a, _missing(names))


def streams_heartbeat(world: World, names: Names) -> Message:
    return StreamsGroupHeartbeatRequest(group_id=names.group, member_id="nobody", member_epoch=5)


def have_applications(world: World, names: Names) -> None:
    """One reads the first topic and keeps its store in the second; another reads the first only."""
    for group, changelog in ((names.group, names.b), (names.other_group, None)):
        insist(world, joining(group, names.a, changelog), lambda found: found.error_code)


def describe_applications(world: World, names: Names) -> Message:
    groups = (names.group, names.other_group, "no-such-group")
    return StreamsGroupDescribeRequest(group_ids=groups, include_authorized_operations=True)


def _user(names: Names, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=f"{names.base}-user",
        mechanism=SHA_256,
        iterations=iterations,
        salt=b"salt-of-sixteen!",
        salted_password=b"p" * 32,
    )


def have_user(world: World, names: Names) -> None:
    request = AlterUserScramCredentialsRequest(upsertions=(_user(names),))
    insist(world, request, lambda found: found.results[0].error_code)


def describe_users(world: World, names: Names) -> Message:
    users = (UserName(name=f"{names.base}-user"), UserName(name="nobody"))
    return DescribeUserScramCredentialsRequest(users=users)


def alter_users(world: World, names: Names) -> Message:
    """One who is there, one who is not, and one whose hash would be too cheap."""
    gone = ScramCredentialDeletion(name="nobody", mechanism=SHA_256)
    cheap = _user(Names("cheap"), 1)
    return AlterUserScramCredentialsRequest(deletions=(gone,), upsertions=(_user(names, 8192), cheap))


def replace_configs(world: World, names: Names) -> Message:
    return _replacing(alter_configs(world, names))


def replace_nonsense(world: World, names: Names) -> Message:
    return _replacing(alter_nonsense(world, names))


def _replacing(request: Message) -> AlterConfigsRequest:
    """The same by the API that replaces all settings; of all brokers, Kafka has one that must stay."""
    assert isinstance(request, IncrementalAlterConfigsRequest)
    stays = {OF_BROKER: (AlterableConfig(name="min.insync.replicas", value="1"),)}
    return AlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=(
                    *(AlterableConfig(name=c.name, value=c.value) for c in each.configs),
                    *stays.get(each.resource_type, ()),
                ),
            )
            for each in request.resources
        ),
        validate_only=request.validate_only,
    )


def list_resources(world: World, names: Names) -> Message:
    return ListConfigResourcesRequest(resource_types=(CLIENT_METRICS,))


def _missing(names: Names) -> str:
    return f"{names.base}-store-changelog"


def _seen(names: Names) -> list[Right]:
    return [Right(O.READ, GROUP, names.group), *(Right(O.DESCRIBE, TOPIC, t) for t in (names.a, names.b))]


def _named(names: Names) -> list[Right]:
    topics = (names.a, _missing(names))
    return [Right(O.READ, GROUP, names.group), *(Right(O.DESCRIBE, TOPIC, topic) for topic in topics)]


def _made(names: Names) -> list[Right]:
    return [*_named(names), Right(O.CREATE, TOPIC, _missing(names))]


SHOWN = each(on(O.DESCRIBE, GROUP, "group"), on(O.DESCRIBE, TOPIC, "a", "b"))
CASES = (
    Case("streams-heartbeat", streams_heartbeat, on(O.READ, GROUP, "group")),
    Case("streams-join", streams_join, _seen, changes=True),
    Case("streams-join-creating", streams_join_creating, _made, changes=True),
    Case(
        "streams-join-creating-on-cluster",
        streams_join_creating,
        each(_named, on_cluster(O.CREATE)),
        changes=True,
    ),
    Case("describe-streams", describe_applications, SHOWN, None, have_applications),
    Case("describe-users", describe_users, on_cluster(O.DESCRIBE), None, have_user),
    Case("alter-users", alter_users, on_cluster(O.ALTER), None, have_user),
    Case("replace-configs", replace_configs, ALTERED),
    Case("replace-nonsense", replace_nonsense, ALTERED),
    Case("list-config-resources", list_resources, on_cluster(O.DESCRIBE_CONFIGS)),
    Case("list-client-metrics", list_resources, on_cluster(O.DESCRIBE_CONFIGS), 0),
)
