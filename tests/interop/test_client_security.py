"""kgroup's own client against every listener kind of a real Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.listing import list_groups
from kgroup.admin.topics import cluster_status
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.client.retry import OutcomeUnknown, Retry
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, Unreachable

from .conftest import require
from .kafka import CLUSTER_ID, SASL_MECHANISMS, USERS, RealKafka
from .server import free_port

pytestmark = pytest.mark.interop
MUTUAL_TLS = {"listener.name.ssl.ssl.client.auth": "required"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """A broker with TLS that wants client certificates, and SASL with and without TLS."""
    require("java", "mvn")
    listeners = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
    with RealKafka(MUTUAL_TLS, listeners, base=tmp_path_factory.mktemp("secured")) as running:
        yield running


def settings(kafka: RealKafka, protocol: str, **properties: str) -> ConnectionSettings:
    """For the listener of a kind; properties with their dots written as underscores."""
    tls = {"ssl_ca_location": str(kafka.tls.ca)} if protocol.endswith("SSL") else {}
    given = {"security_protocol": protocol, **tls, **properties}
    security = security_of(Given({name.replace("_", "."): value for name, value in given.items()}))
    return ConnectionSettings(parse_bootstrap(kafka.address(protocol)), security, request_timeout_s=10.0)


def cluster_id(made: ConnectionSettings) -> str | None:
    with SocketTransport(made) as transport:
        admin = ClusterView(transport, Retry(timeout_s=10.0))
        assert list_groups(admin).errors == ()  # also reaches the broker at its advertised address
        return cluster_status(admin).cluster_id


def test_plaintext(kafka: RealKafka) -> None:
    assert cluster_id(settings(kafka, "PLAINTEXT")) == CLUSTER_ID


def test_tls_with_a_client_certificate(kafka: RealKafka) -> None:
    shown = settings(kafka, "SSL", ssl_certificate_location=str(kafka.tls.client))
    assert cluster_id(shown) == CLUSTER_ID


def test_tls_without_the_client_certificate_it_wants(kafka: RealKafka) -> None:
    with pytest.raises(Unreachable) as caught:
        cluster_id(settings(kafka, "SSL"))
    assert "ssl.certificate.location" in (caught.value.hint or "")


def test_tls_with_an_authority_nobody_vouched_for(kafka: RealKafka) -> None:
    with pytest.raises(Unreachable, match="TLS failed") as caught:
        cluster_id(settings(kafka, "SSL", ssl_ca_location=""))
    assert "ssl.ca.location" in (caught.value.hint or "")


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", SASL_MECHANISMS)
def test_sasl(kafka: RealKafka, protocol: str, mechanism: str) -> None:
    for user, password in USERS.items():
        known = {"sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": password}
        assert cluster_id(settings(kafka, protocol, **known)) == CLUSTER_ID


@pytest.mark.parametrize("mechanism", SASL_MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_or_user_is_named(kafka: RealKafka, mechanism: str, user: str) -> None:
    wrong = {"sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": "wrong-password"}
    with pytest.raises(BrokerRefused) as caught:
        cluster_id(settings(kafka, "SASL_PLAINTEXT", **wrong))
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED"
    assert f"did not authenticate {user} with {mechanism}" in caught.value.message
    assert "wrong-password" not in caught.value.message


@pytest.mark.parametrize(
    ("listener", "spoken", "words"),
    [
        ("SSL", "PLAINTEXT", "the answer is TLS"),
        ("PLAINTEXT", "SSL", "TLS"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "closed the connection instead of answering"),
    ],
)
def test_the_wrong_security_protocol_fails_at_once_with_a_hint(
    kafka: RealKafka, listener: str, spoken: str, words: str
) -> None:
    where = parse_bootstrap(kafka.address(listener))
    made = replace(settings(kafka, spoken, ssl_ca_location=str(kafka.tls.ca)), bootstrap=where)
    begun = time.monotonic()
    with pytest.raises(Unreachable, match=words) as caught:
        cluster_id(made)
    assert "security.protocol" in (caught.value.hint or "")
    assert time.monotonic() - begun < 10


def test_a_broker_that_is_down_is_unreachable_within_the_timeout() -> None:
    address = f"127.0.0.1:{free_port()}"
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="connection refused") as caught:
        cluster_id(ConnectionSettings(parse_bootstrap(address), request_timeout_s=3.0))
    assert address in caught.value.message
    assert not isinstance(caught.value, OutcomeUnknown)
    assert time.monotonic() - begun < 3
