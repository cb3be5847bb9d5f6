"""AlterConfigs, ListConfigResources, documented settings, ids of brokers and what they tell of listeners."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kgroup.broker.authentication.settings import OF_LISTENERS
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ConfigError, ErrorCode, StorageError
from kgroup.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.releases import NEWEST
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings_in_force import read_settings
from kgroup.settings import INT, LONG, SHORT
from tests.unit.broker.authentication.listeners import SASL, locked
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.test_configs import (
    APPEND,
    BROKER,
    GROUP,
    HEARTBEAT,
    SESSION,
    SET,
    TOPIC,
    alter,
    heartbeat_interval,
    told,
)

LOGGER, METRICS = 8, 16


def asked(transport: EmbeddedTransport, request: Any, **versions: int) -> Any:
    return transport.request(None, request, **versions)


def resource(kind: int, name: str, *pairs: tuple[str, str | None]) -> AlterConfigsResource:
    configs = tuple(AlterableConfig(name=key, value=value) for key, value in pairs)
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def replaced(
    transport: EmbeddedTransport, *resources: AlterConfigsResource, check: bool = False
) -> list[int]:
    answer = asked(transport, AlterConfigsRequest(resources=resources, validate_only=check))
    return [each.error_code for each in answer.responses]


def own(transport: EmbeddedTransport, kind: int, name: str, source: int) -> dict[str, str | None]:
    return {key: value for key, (value, where) in told(transport, kind, name).items() if where == source}


def test_what_is_not_named_goes_back_to_its_default(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", **{"retention.ms": "77"})
    assert alter(transport, GROUP, "g", (SET, HEARTBEAT, "7000"), (SET, SESSION, "50000")) == 0
    assert alter(transport, BROKER, "0", (SET, "message.max.bytes", "400")) == 0
    new = [
        resource(TOPIC, "t", ("segment.bytes", "2000000")),
        resource(GROUP, "g", (HEARTBEAT, "8000")),
        resource(BROKER, "0", ("log.cleanup.policy", "compact")),
    ]
    before = [told(transport, *each) for each in ((TOPIC, "t"), (GROUP, "g"), (BROKER, "0"))]
    assert replaced(transport, *new, check=True) == [0, 0, 0]
    assert [told(transport, *each) for each in ((TOPIC, "t"), (GROUP, "g"), (BROKER, "0"))] == before
    assert replaced(transport, *new) == [0, 0, 0]
    assert own(transport, TOPIC, "t", 1) == {"segment.bytes": "2000000"}
    assert own(transport, GROUP, "g", 8) == {HEARTBEAT: "8000"}
    assert own(transport, BROKER, "0", 2) == {"log.cleanup.policy": "compact"}
    assert heartbeat_interval(transport) == 8000
    assert replaced(transport, resource(TOPIC, "t"), resource(GROUP, "g"), resource(BROKER, "0")) == [0, 0, 0]
    assert heartbeat_interval(transport) == 5000
    assert not own(transport, TOPIC, "t", 1) | own(transport, GROUP, "g", 8) | own(transport, BROKER, "0", 2)


def test_each_resource_is_refused_by_itself(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", **{"retention.ms": "77"})
    codes = replaced(
        transport,
        resource(TOPIC, "t", ("segment.bytes", None)),
        resource(GROUP, "g", (HEARTBEAT, "7000")),
        resource(GROUP, "h", (HEARTBEAT, "7000"), (HEARTBEAT, "8000")),
        resource(GROUP, "i", ("nonsense", "7000")),
        resource(TOPIC, "nobody", ("retention.ms", "5")),
        resource(BROKER, "0", ("num.partitions", "2")),
        resource(BROKER, "1", ("message.max.bytes", "2")),
        resource(LOGGER, "0", ("kafka", "INFO")),
        resource(99, "0"),
        resource(GROUP, "j", (HEARTBEAT, "7000")),
        resource(GROUP, "j", (HEARTBEAT, "7000")),
    )
    invalid = ErrorCode.INVALID_REQUEST
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [invalid, 0, invalid, ErrorCode.INVALID_CONFIG, gone, *[invalid] * 6]
    assert own(transport, TOPIC, "t", 1) == {"retention.ms": "77"}
    assert transport.cluster.catalog.group_configs == {"g": {HEARTBEAT: "7000"}}


def test_what_has_settings_is_listed(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    assert alter(transport, GROUP, "not there yet", (SET, HEARTBEAT, "7000")) == 0

    def listed(*kinds: int, version: int = 1) -> Any:
        answer = asked(transport, ListConfigResourcesRequest(resource_types=kinds), max_version=version)
        assert answer.error_code == 0
        return [(r.resource_type, r.resource_name) for r in answer.config_resources]

    nodes = [str(node) for node in transport.cluster.nodes]
    group = (GROUP, "not there yet")
    assert listed(GROUP) == [group]
    assert listed(BROKER, LOGGER) == [(kind, node) for kind in (LOGGER, BROKER) for node in nodes]
    assert (TOPIC, "t") in listed(TOPIC)
    assert set(listed()) == {group, *listed(BROKER, LOGGER), *listed(TOPIC)}
    assert listed(METRICS) == listed(version=0) == []
    wrong = asked(transport, ListConfigResourcesRequest(resource_types=(GROUP, 1)))
    assert (wrong.error_code, wrong.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
    assert replaced(transport, resource(GROUP, "not there yet")) == [0]
    assert listed(GROUP) == []


def described(transport: EmbeddedTransport, kind: int, name: str, *, texts: bool = True) -> dict[str, Any]:
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(wanted,), include_documentation=texts)
    (found,) = asked(transport, request).results
    assert found.error_code == 0
    return {entry.name: entry for entry in found.configs}


def test_every_setting_is_documented(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    roster = [("kgroup.registered.instance.ids", "a"), ("kgroup.registration.wait.ms", "1")]
    assert replaced(transport, resource(GROUP, "g", *roster, ("kgroup.target.group.size", "2"))) == [0]
    assert [name for name, row in OF_LISTENERS.items() if not row.text] == []
    for kind, name in ((TOPIC, "t"), (GROUP, "g"), (BROKER, "0")):
        entries = described(transport, kind, name)
        assert [key for key, entry in entries.items() if not entry.documentation] == []
        assert all(
            entry.documentation is None for entry in described(transport, kind, name, texts=False).values()
        )


@pytest.mark.parametrize("text", ["1_000", "\xa05000", "0x10", "5e3", "5.0", "", " "])
def test_all_whole_numbers_are_read_as_java_reads_them(transport: EmbeddedTransport, text: str) -> None:
    """Whoever has the setting, and whether it is given at the start or changed by request."""
    create_topic(transport, "t")
    numbers = {
        (kind, name, key)
        for kind, name in ((TOPIC, "t"), (GROUP, "g"), (BROKER, "0"))
        for key, entry in described(transport, kind, name).items()
        if entry.config_type in (INT, SHORT, LONG)
    }
    assert len(numbers) > 100
    accepted = [each for each in sorted(numbers) if alter(transport, *each[:2], (SET, each[2], text)) == 0]
    assert accepted == []
    for _, _, key in (each for each in numbers if each[0] == BROKER and "throttled" not in each[2]):
        if key != "replica.alter.log.dirs.io.max.bytes.per.second":  # only while it runs
            with pytest.raises(ConfigError, match=f"for configuration {key}: Not a number of type"):
                read_settings({key: text}, NEWEST)


def test_a_number_with_blanks_acts_and_is_shown_without(transport: EmbeddedTransport) -> None:
    """A control character is blank in Java, and not in Python."""
    assert alter(transport, GROUP, "g", (SET, HEARTBEAT, "\x01+07000\t")) == 0
    assert described(transport, GROUP, "g")[HEARTBEAT].value == "7000"
    assert heartbeat_interval(transport) == 7000


def test_a_groups_setting_has_the_brokers_default_behind_it() -> None:
    """A value given at the start does not hide Kafka's own."""
    given = {"group.consumer.heartbeat.interval.ms": "6000"}
    transport = EmbeddedTransport(Cluster(None, config=given, offsets_partitions=1))
    wanted = DescribeConfigsResource(resource_type=GROUP, resource_name="g", configuration_keys=(HEARTBEAT,))
    request = DescribeConfigsRequest(resources=(wanted,), include_synonyms=True)
    ((entry,),) = (result.configs for result in asked(transport, request).results)
    assert [(each.value, each.source) for each in entry.synonyms] == [("6000", 4), ("5000", 5)]
    transport.close()


def test_items_are_added_to_any_list_of_a_group(transport: EmbeddedTransport) -> None:
    tags = "streams.rack.aware.assignment.tags"
    assert alter(transport, GROUP, "g", (APPEND, tags, "zone")) == 0
    assert alter(transport, GROUP, "g", (APPEND, tags, "rack")) == 0
    assert own(transport, GROUP, "g", 8) == {tags: "zone,rack"}
    assert alter(transport, GROUP, "g", (APPEND, SESSION, "1")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_brokers_have_the_ids_they_are_given(name: str, tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, brokers=2, config={name: "5"}, offsets_partitions=3))
    create_topic(transport, "t", 3)
    for _ in range(2):
        metadata = asked(transport, MetadataRequest(topics=None))
        assert [broker.node_id for broker in metadata.brokers] == [5, 6]
        assert metadata.controller_id == 5
        leaders = {t.name: [p.leader_id for p in t.partitions] for t in metadata.topics}
        assert leaders["t"] == leaders["__consumer_offsets"] == [5, 6, 5]
        cluster = asked(transport, DescribeClusterRequest())
        assert ([b.broker_id for b in cluster.brokers], cluster.controller_id) == ([5, 6], 5)
        found = asked(transport, FindCoordinatorRequest(coordinator_keys=("a", "b", "c", "d", "e")))
        assert {each.node_id for each in found.coordinators} == {5, 6}
        entries = described(transport, BROKER, "6")
        assert (entries["node.id"].value, entries["broker.id"].value) == ("6", "6")
        assert alter(transport, BROKER, "5", (SET, "message.max.bytes", "900")) == 0
        transport.close()
        transport = EmbeddedTransport(Cluster(tmp_path, brokers=2))  # the folder remembers
    transport.close()
    with pytest.raises(StorageError, match="belongs to broker 5, not 1"):
        Cluster(tmp_path, config={"node.id": "1"})


def test_one_broker_with_an_id_applies_its_own_settings() -> None:
    transport = EmbeddedTransport(Cluster(None, config={"node.id": "1"}, offsets_partitions=1))
    create_topic(transport, "t")
    assert (
        alter(transport, BROKER, "1", (SET, "message.max.bytes", "900"), (SET, "max.connections", "9")) == 0
    )
    cluster = transport.cluster
    assert (cluster.topic_settings("t").max_message_bytes, cluster.settings.connections_max) == (900, 9)
    assert alter(transport, BROKER, "0", (SET, "message.max.bytes", "1")) == ErrorCode.INVALID_REQUEST
    transport.close()


def test_two_ids_are_refused() -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        Cluster(None, config={"node.id": "1", "broker.id": "2"})
    assert Cluster(None, config={"node.id": "1", "broker.id": "1"}).nodes == range(1, 2)


def test_a_broker_tells_its_listeners_and_no_secret() -> None:
    given = {
        **SASL,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "SASL_PLAINTEXT://kafka.test:19092",
    }
    cluster = Cluster(None, brokers=2, offsets_partitions=1, config={"node.id": "1"})

    async def test() -> None:
        async with locked(cluster, given) as server:
            transport = EmbeddedTransport(cluster)
            transport.dispatcher.of_listeners = server.dispatcher.of_listeners
            entries = described(transport, BROKER, "2")
            values = {name: entry.value for name, entry in entries.items()}
            port = server.dispatcher.addresses["PLAINTEXT"][2][1]
            assert (
                values["advertised.listeners"]
                == f"SASL_PLAINTEXT://kafka.test:19093,PLAINTEXT://127.0.0.1:{port}"
            )
            assert values["listeners"].endswith(f",PLAINTEXT://127.0.0.1:{port}")
            assert values["listeners"].startswith("SASL_PLAINTEXT://127.0.0.1:")
            assert (
                values["listener.security.protocol.map"]
                == "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"
            )
            assert values["sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
            assert values["connection.failed.authentication.delay.ms"] == "0"
            secret = entries["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
            assert (secret.value, secret.is_sensitive) == (None, True)
            assert "secret" not in repr(entries)
            assert not any(name.startswith("inter.broker") for name in entries)

    asyncio.run(test())
    cluster.close()
