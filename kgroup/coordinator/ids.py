"""Member ids from a seed: the same seed gives the same ids in the same order."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

from kgroup.domain import uuid_text


class Ids:
    """A source of ids that repeat only if the seed does; a host gives each incarnation a seed of its own."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._count = 0

    def classic_member(self, prefix: str) -> str:
        """Return `<prefix>-<uuid>`: the prefix is the instance id of a static member, else the client id."""
        return f"{prefix}-{UUID(bytes=self._next(), version=4)}"

    def consumer_member(self) -> str:
        """Return 22 characters of URL-safe base64, as Kafka makes them for the consumer protocol."""
        return uuid_text(self._next())

    def _next(self) -> bytes:
        self._count += 1
        return blake2b(self._seed + self._count.to_bytes(8), digest_size=16).digest()
