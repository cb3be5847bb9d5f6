"""Kafka's settings of listeners: read as Kafka reads them, refused where a lock would be missing."""

from __future__ import annotations

import pytest

from kgroup.broker.authentication.settings import read_listeners
from kgroup.errors import ConfigError

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required;"


def test_names_protocols_and_addresses() -> None:
    found = read_listeners(
        {
            "listeners": "CLIENTS://127.0.0.1:9093, CONTROLLER://:9094,PLAINTEXT://[::1]:9092",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
            "advertised.listeners": "CLIENTS://kafka.example.com:443",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "CLIENTS",
        }
    )
    assert [(each.name, each.protocol, each.host, each.port, each.advertised) for each in found] == [
        ("CLIENTS", "SASL_SSL", "127.0.0.1", 9093, ("kafka.example.com", 443)),
        ("PLAINTEXT", "PLAINTEXT", "::1", 9092, None),
    ]


def test_the_closest_value_counts() -> None:
    [listener] = read_listeners(
        {
            "listeners": "IN://127.0.0.1:9093",
            "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-256, PLAIN",
            "connections.max.reauth.ms": "1",
            "listener.name.in.connections.max.reauth.ms": "2",
            "listener.name.in.scram-sha-256.connections.max.reauth.ms": "3",
        }
    )
    assert listener.mechanisms == ("SCRAM-SHA-256", "PLAIN")
    assert listener.number("connections.max.reauth.ms", "PLAIN") == 2
    assert listener.number("connections.max.reauth.ms", "SCRAM-SHA-256") == 3
    assert listener.number("sasl.server.max.receive.size") == 524_288


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"listeners": "SASL_SSL"}, "is not NAME://HOST:PORT"),
        ({"listeners": "SASL_SSL://127.0.0.1:99999"}, "is not NAME://HOST:PORT"),
        ({"listeners": "X://127.0.0.1:1"}, "listener X has no security protocol"),
        ({"listeners": "SSL://127.0.0.1:1,SSL://127.0.0.1:2"}, "names SSL twice"),
        ({"listeners": "SSL://127.0.0.1:1,PLAINTEXT://127.0.0.1:1"}, "a different port"),
        ({"listeners": ""}, "names none for clients"),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:1", "advertised.listeners": "SSL://a:1"},
            "which listeners does not",
        ),
        ({"listeners": "X://127.0.0.1:1", "listener.security.protocol.map": "X:TLS"}, "is not NAME:PROTOCOL"),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:1", "ssl.keystore.locaton": "x"},
            "ssl.keystore.locaton is not known",
        ),
        ({"listeners": "PLAINTEXT://127.0.0.1:1", "sasl.jaas.config": JAAS}, "not set for a listener"),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:1", "listener.name.other.ssl.client.auth": "none"},
            "there is no such listener",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:1", "principal.builder.class": "mine"},
            "principal.builder.class",
        ),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "has no effect without listeners"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_listeners(settings)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.7", "[::]"])
@pytest.mark.parametrize(
    ("protocol", "client_auth", "locked"),
    [
        ("PLAINTEXT", None, False),
        ("SASL_PLAINTEXT", None, False),
        ("SSL", None, False),
        ("SSL", "requested", False),
        ("SSL", "required", True),
        ("SASL_SSL", None, True),
    ],
)
def test_beyond_this_machine_only_with_a_lock(
    host: str, protocol: str, client_auth: str | None, locked: bool
) -> None:
    settings = {
        "listeners": f"X://{host}:9093",
        "listener.security.protocol.map": f"X:{protocol}",
        "advertised.listeners": "X://broker.example.com:9093",
    }
    if client_auth:
        settings["ssl.client.auth"] = client_auth
    if locked:
        assert read_listeners(settings)
    else:
        with pytest.raises(ConfigError, match="open to others on"):
            read_listeners(settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "[::1]"])
def test_loopback_needs_none(host: str) -> None:
    [listener] = read_listeners({"listeners": f"PLAINTEXT://{host}:9092"})
    assert listener.protocol == "PLAINTEXT"


def test_clients_cannot_be_sent_to_every_address() -> None:
    with pytest.raises(ConfigError, match="clients cannot be sent there"):
        read_listeners({"listeners": "SASL_SSL://0.0.0.0:9093"})


def test_secrets_are_not_in_what_is_shown() -> None:
    [listener] = read_listeners(
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:9093", "ssl.key.password": "s3cret"}
    )
    assert "s3cret" not in repr(listener)
