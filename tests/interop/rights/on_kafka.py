"""The matrix on a real Kafka with its StandardAuthorizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from kgroup.client.auth.credentials import Password
from kgroup.client.security import Security
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport

from ..kafka import AUTHORIZED, USERS, RealKafka
from .recorded import KAFKA
from .rows import Row, play
from .visible import Seen
from .world import World

SETTINGS = {**AUTHORIZED, "auto.create.topics.enable": "true"}
"""Of both brokers: alice and who comes without a name are super users, bob is not."""


class Secured(Protocol):
    """A broker that can be reached in the clear, and by SASL."""

    bootstrap: str

    def address(self, kind: str = "PLAINTEXT") -> str: ...


@contextmanager
def worlds(broker: Secured) -> Iterator[World]:
    """A running broker, asked as a super user and as bob."""
    secured = ConnectionSettings(
        parse_bootstrap(broker.address("SASL_PLAINTEXT")),
        security=Security(credentials=Password("PLAIN", "bob", USERS["bob"])),
    )
    plain = ConnectionSettings(parse_bootstrap(broker.bootstrap))
    with SocketTransport(plain) as boss, SocketTransport(secured) as asker:
        yield World(boss, asker)


def play_on_kafka(base: Path | None = None, chosen: Iterable[Row] | None = None) -> dict[str, Seen]:
    """What bob sees of every row, or of those chosen."""
    kafka = RealKafka(SETTINGS, ("SASL_PLAINTEXT",), base=base)
    kafka.kafka = KAFKA
    with kafka, worlds(kafka) as world:
        return play(world, chosen)
