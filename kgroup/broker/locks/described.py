"""A broker's listeners in DescribeConfigs: their settings and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kgroup.broker.locks.settings import OF_LISTENERS, PASSWORD, ListenerSettings
from kgroup.runtime.topic_settings import LIST, STRING

UNKNOWN = 0  # config type
LISTENERS, ADVERTISED, PROTOCOL_MAP = "listeners", "advertised.listeners", "listener.security.protocol.map"
Addresses = Mapping[int, tuple[str, int]]


class Open(NamedTuple):
    """A listener that is open: its settings, where each broker listens, and where clients are sent."""

    settings: ListenerSettings
    bound: Addresses
    advertised: Addresses


class Described(NamedTuple):
    """A setting of the listeners; one that is secret, or may be, has no value."""

    name: str
    value: str | None
    type: int
    secret: bool = False


def described(listeners: Sequence[Open], node: int) -> Iterator[Described]:
    """Yield the settings of the listeners of one broker.

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
        else:
            kind = OF_LISTENERS[name]
            secret = kind == PASSWORD
            yield Described(name, None if secret else value, kind, secret=secret)


def _written(addresses: Iterator[tuple[str, str, int]]) -> str:
    return ",".join(
        f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"
        for name, host, port in addresses
    )
