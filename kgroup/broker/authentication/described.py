"""A broker's listeners in DescribeConfigs: their settings and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kgroup.broker.authentication.settings import (
    ADVERTISED,
    LISTENERS,
    OF_LISTENERS,
    PROTOCOL_MAP,
    ListenerSettings,
)
from kgroup.settings import PASSWORD, UNKNOWN, Setting

Addresses = Mapping[int, tuple[str, int]]


class Open(NamedTuple):
    """A listener that is open: its settings, where each broker listens, and where clients are sent."""

    settings: ListenerSettings
    bound: Addresses
    advertised: Addresses


class Described(NamedTuple):
    """A setting of the listeners; one that is secret, or may be, has no value."""

    row: Setting
    value: str | None


def described(listeners: Sequence[Open], node: int) -> Iterator[Described]:
    """Yield the settings of the listeners of one broker.

    Those for a single listener (`listener.name.…`) have no value and no type, as Kafka has no definition of
    them and takes them for secret.
    """
    yield Described(LISTENERS, _written((o.settings.name, *o.bound[node]) for o in listeners))
    yield Described(ADVERTISED, _written((o.settings.name, *o.advertised[node]) for o in listeners))
    yield Described(PROTOCOL_MAP, ",".join(f"{o.settings.name}:{o.settings.protocol}" for o in listeners))
    for name, value in listeners[0].settings.values.items():
        row = OF_LISTENERS.get(name, Setting(name, UNKNOWN))
        yield Described(row, None if row.type in (PASSWORD, UNKNOWN) else value)


def _written(addresses: Iterator[tuple[str, str, int]]) -> str:
    return ",".join(
        f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"
        for name, host, port in addresses
    )
