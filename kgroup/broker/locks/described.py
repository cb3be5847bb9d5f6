"""What a broker says of its listeners in DescribeConfigs: as they are set, and where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kgroup.broker.locks.settings import JAAS, OF_LISTENERS, ListenerSettings
from kgroup.runtime.topic_settings import INT, LIST, LONG, STRING

UNKNOWN, CLASS, PASSWORD = 0, 8, 9  # config types beside those of topics
LISTENERS, ADVERTISED, PROTOCOL_MAP = "listeners", "advertised.listeners", "listener.security.protocol.map"
_SECRETS = frozenset(
    {
        JAAS,
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
    }
)
_TYPES = {
    "connection.failed.authentication.delay.ms": INT,
    "connections.max.reauth.ms": LONG,
    "principal.builder.class": CLASS,
    "sasl.enabled.mechanisms": LIST,
    "sasl.oauthbearer.clock.skew.seconds": INT,
    "sasl.oauthbearer.expected.audience": LIST,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": LONG,
    "sasl.server.callback.handler.class": CLASS,
    "sasl.server.max.receive.size": INT,
    "ssl.enabled.protocols": LIST,
}
"""What is no text, as Kafka 4.3.1's KafkaConfig defines it."""

Addresses = Mapping[int, tuple[str, int]]


class Open(NamedTuple):
    """A listener that is open: its settings, where each broker listens, and where clients are sent."""

    settings: ListenerSettings
    bound: Addresses
    advertised: Addresses


class Described(NamedTuple):
    """A setting of the listeners; what is secret, or may be, has no value."""

    name: str
    value: str | None
    type: int
    secret: bool = False


def described(listeners: Sequence[Open], node: int) -> Iterator[Described]:
    """The settings of the listeners of one broker.

    Those for a single listener (`listener.name.…`) have no value and no type, as Kafka has no definition of
    them and takes them for secret.
    """
    yield Described(LISTENERS, _written((o.settings.name, *o.bound[node]) for o in listeners), LIST)
    yield Described(ADVERTISED, _written((o.settings.name, *o.advertised[node]) for o in listeners), LIST)
    protocols = ",".join(f"{o.settings.name}:{o.settings.protocol}" for o in listeners)
    yield Described(PROTOCOL_MAP, protocols, STRING)
    for name, value in listeners[0].settings.values.items():
        if name not in OF_LISTENERS:
            yield Described(name, None, UNKNOWN, secret=True)
        elif name in _SECRETS:
            yield Described(name, None, PASSWORD, secret=True)
        else:
            yield Described(name, value, _TYPES.get(name, STRING))


def _written(addresses: Iterator[tuple[str, str, int]]) -> str:
    return ",".join(
        f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"
        for name, host, port in addresses
    )
