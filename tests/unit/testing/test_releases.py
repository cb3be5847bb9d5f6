"""A cluster that plays an older Kafka, as clients take it that adapt to what brokers announce."""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.registry import KAFKA_APIS, name_of
from kgroup.protocol.releases import SERVED, Release
from kgroup.testing import Cluster
from tests.unit.testing.clients import CLIENTS, Client
from tests.unit.testing.consumers import PARTITIONS, TOPIC, consumers

RELEASES = pytest.mark.parametrize("kafka", [str(release) for release in SERVED])


@RELEASES
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_adapt_to_the_release(kafka: str, client: type[Client]) -> None:
    """They produce, read and commit, in no version of any request that the release did not serve."""
    with Cluster({TOPIC: 1}, kafka=kafka) as cluster:
        seen = cluster.observe()
        user = client(cluster, "user", idempotent=True)
        sent = [user.send(TOPIC, 0, value) for value in (b"a", b"b")]
        assert (sent, user.read(TOPIC, 0, 2)) == ([0, 1], [b"a", b"b"])
        user.commit("pay", TOPIC, 0, 2)
        assert user.committed("pay", TOPIC, 0) == 2
        user.close()
        versions = {name_of(key): Release.of(kafka).versions(key) for key in KAFKA_APIS}
        asked = {(hit.request, hit.version) for hit in seen.fired if hit.request != "ApiVersions"}
        assert {"Produce", "Fetch", "OffsetCommit", "OffsetFetch"} <= {request for request, _ in asked}
        assert [(request, v) for request, v in asked if v not in versions[request]] == []


@RELEASES
def test_members_share_and_one_is_frozen(kafka: str) -> None:
    with (
        Cluster({TOPIC: PARTITIONS}, kafka=kafka) as cluster,
        consumers(cluster, "pay", "classic", 2) as both,
    ):
        gone = cluster.freeze("orders-0")
        cluster.advance("45s")
        both.share_all(1)
        assert gone not in {m.member_id for m in cluster.describe("pay").known_members}
        cluster.thaw("orders-0")
        both.share_all(0, 1)


@pytest.mark.parametrize(
    ("kafka", "taken_for"),
    [("2.3", (2, 3)), ("2.4", (2, 4)), ("2.8", (2, 8)), ("3.3", (3, 3)), ("3.9", (3, 9)), ("4.0", (4, 0))],
)
def test_kafka_python_takes_it_for_the_release(kafka: str, taken_for: tuple[int, int]) -> None:
    with Cluster(kafka=kafka) as cluster:
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap)
        assert consumer.config["api_version"][:2] == taken_for
        consumer.close()


@pytest.mark.parametrize("kafka", ["2.3", "3.3", "3.9"])
def test_the_consumer_protocol_is_not_there_before_4_0(kafka: str) -> None:
    """Kafka 3.9 serves its heartbeat, and refuses it unless set to try it out (docs/broker-versions.md)."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id="pay", member_id="m", member_epoch=0, subscribed_topic_names=(TOPIC,)
    )
    with (
        Cluster({TOPIC: 1}, kafka=kafka) as cluster,
        SocketTransport(ConnectionSettings(parse_bootstrap(cluster.bootstrap))) as transport,
    ):
        if kafka == "3.9":
            told = transport.request(None, joining)
            assert told.error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
        else:
            with pytest.raises(BrokerRefused, match="does not serve ConsumerGroupHeartbeat") as refused:
                transport.request(None, joining)
            assert refused.value.hint == "Kafka 4.0 and later serve it"
        assert cluster.groups() == ()


@pytest.mark.parametrize("text", ["2.2", "4.5", "4.4.0", "", "4"])
def test_a_release_that_is_not_there_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Cluster(kafka=text)
    assert refused.value.hint == "give one of 2.3, 2.4, 2.8, 3.3, 3.9, 4.0, 4.3, 4.4"
