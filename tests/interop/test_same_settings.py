"""AlterConfigs and ListConfigResources on Kafka and on ours: all settings replaced, and who has some."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import pytest

from kgroup.broker.authentication.settings import WHERE
from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kgroup.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kgroup.runtime.settings import BrokerSettings

from .conftest import ASKED
from .peer import Peer, at_rest, text
from .test_same_answers import BROKER, GROUP, NOT_THERE, SET, TOPIC, Seen, peers  # noqa: F401

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        set(ASKED) != {"kafka", "kgroup"}, reason="one server alone has nothing to be compared to"
    ),
]

LOGGER, METRICS = 8, 16
SOURCES = {TOPIC: (1,), BROKER: (2, 3), GROUP: (8,)}
STAYS = ("min.insync.replicas", "1")
"""Of all brokers, Kafka 4.3 has this one from the start, and does not let it go."""
UNTOLD = ("super.users", "allow.everyone.if.no.acl.found")
"""What only Kafka's authorizer is told, so that DescribeConfigs has no word of it."""
OF_BROKERS = ("message.max.bytes", "log.cleanup.policy", "max.connections")


def own(peer: Peer, kind: int, name: str) -> Any:
    """What is set for this resource itself."""
    code, entries = peer.describe(kind, name, *(OF_BROKERS if kind == BROKER else ()))
    return code, {key: entry[0] for key, entry in entries.items() if entry[1] in SOURCES[kind]}


def settings_are_replaced(peer: Peer) -> Seen:
    seen: Seen = [peer.create(retention_ms="77").error_code]
    group, me = f"{peer.topic}-group", str(peer.node)
    session, beat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    for kind, name, pairs in [
        (TOPIC, peer.topic, [("cleanup.policy", "compact"), ("segment.bytes", "2000000")]),
        (TOPIC, peer.topic, [("segment.bytes", "3000000")]),
        (TOPIC, peer.topic, [("segment.bytes", None), ("retention.ms", None)]),
        (TOPIC, peer.topic, [("segment.bytes", "3000000")] * 2),
        (TOPIC, peer.topic, [("segment.bytes", "x")]),
        (TOPIC, peer.topic, [("nonsense", "x"), ("retention.ms", "5")]),
        (TOPIC, peer.topic, []),
        (TOPIC, "nobody", [("retention.ms", "5")]),
        (TOPIC, "nobody", [("retention.ms", "x")]),
        (TOPIC, "a b", [("retention.ms", "5")]),
        (TOPIC, "", [("retention.ms", "5")]),
        (GROUP, group, [(session, "50000"), (beat, "6000")]),
        (GROUP, group, [(beat, "7000")]),
        (GROUP, group, [(session, "1")]),
        (GROUP, group, [("nonsense", "1")]),
        (GROUP, group, [(session, None)]),
        (GROUP, "", [(session, "50000")]),
        (GROUP, group, []),
        (BROKER, me, [("message.max.bytes", "400"), ("log.cleanup.policy", "compact")]),
        (BROKER, "", [("message.max.bytes", "500"), STAYS]),
        (BROKER, me, [("log.cleanup.policy", "delete")]),
        (BROKER, me, [("broker.id", "1")]),
        (BROKER, me, [("max.connections", "many")]),
        (BROKER, me, [("max.connections", None)]),
        (BROKER, str(NOT_THERE), [("max.connections", "5")]),
        (BROKER, "one", [("max.connections", "5")]),
        (BROKER, me, []),
        (BROKER, "", [STAYS]),
        (LOGGER, me, [("kafka", "INFO")]),
        (1, "x", [("a", "b")]),
        (99, "x", [("a", "b")]),
    ]:
        for check in (True, False):
            answer = peer.replace(kind, name, *pairs, check=check)
            seen.append((kind, pairs, check, answer.error_code))
            if kind in (TOPIC, LOGGER, 1, 99) and answer.error_code != ErrorCode.INVALID_CONFIG:
                seen.append((kind, pairs, text(peer, answer)))
        if answer.error_code == 0:
            seen.append(at_rest(peer, partial(own, kind=kind, name=name)))
    seen.append(
        [own(peer, *each) for each in ((TOPIC, peer.topic), (GROUP, group), (BROKER, me), (BROKER, ""))]
    )
    return seen


def resources_are_listed(peer: Peer) -> Seen:
    group = f"{peer.topic}-group"
    seen: Seen = [
        peer.create().error_code,
        peer.alter(GROUP, group, (SET, "streams.num.standby.replicas", "1")),
    ]

    def listed(peer: Peer, version: int, *kinds: int) -> Any:
        answer = peer(ListConfigResourcesRequest(resource_types=kinds), version)
        names = {group, peer.topic, str(peer.node)}
        return answer.error_code, [
            (r.resource_type, r.resource_name.replace(peer.topic, "t").replace(str(peer.node), "N"))
            for r in answer.config_resources
            if r.resource_name in names
        ]

    for kinds in [(), (GROUP,), (TOPIC, BROKER), (LOGGER, METRICS), (GROUP, GROUP), (1,), (GROUP, 99)]:
        seen.append((kinds, at_rest(peer, lambda peer, kinds=kinds: listed(peer, 1, *kinds))))  # type: ignore[misc]
    seen.append(listed(peer, 0))
    peer.replace(GROUP, group)
    seen.append(at_rest(peer, lambda peer: listed(peer, 1, GROUP)))
    return seen


def brokers_tell_of_themselves(peer: Peer) -> Seen:
    names = [*BrokerSettings.names(), *GroupConfig.names(), *WHERE]
    names = [name for name in names if not name.startswith("kgroup.") and name not in UNTOLD]
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(peer.node), configuration_keys=tuple(names)
    )
    (found,) = peer(DescribeConfigsRequest(resources=(resource,), include_documentation=True)).results
    entries = {entry.name: entry for entry in found.configs}
    ids = [entries[name].value == str(peer.node) for name in ("node.id", "broker.id")]
    advertised = entries["advertised.listeners"].value.startswith("PLAINTEXT://127.0.0.1:")
    kinds = {
        name: (entry.config_type, bool(entry.documentation), entry.is_sensitive)
        for name, entry in entries.items()
    }
    return [found.error_code, ids, advertised, kinds]


@pytest.mark.parametrize(
    "story",
    [settings_are_replaced, resources_are_listed, brokers_tell_of_themselves],
    ids=lambda story: story.__name__,
)
def test_answers_are_kafkas(peers: list[Peer], story: Any) -> None:  # noqa: F811
    for peer in peers:
        peer.topic = f"t{uuid.uuid4().hex[:8]}"
    kafkas, ours = (story(peer) for peer in peers)
    different = [pair for pair in zip(ours, kafkas, strict=True) if pair[0] != pair[1]]
    assert different == [], different[0]
