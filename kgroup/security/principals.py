"""The identity of a connection's client, as access rules name it."""

from __future__ import annotations

from dataclasses import dataclass

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A kind and a name; `str()` gives Kafka's spelling, "User:alice" (KafkaPrincipal)."""

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Return the principal that `str()` gave; ValueError for a text without a kind or without a name."""
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{text!r} is not a principal: write KIND:NAME, as {USER}:alice")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""A client without authentication."""
