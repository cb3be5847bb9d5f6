"""A SASL mechanism as a generator of tokens, without sockets or Kafka messages.

It yields the client's messages and is sent the broker's answers, and ends when the client is satisfied.
"""

from base64 import b64encode
from collections.abc import Generator, Iterable

from kgroup.errors import BrokerRefused, ErrorCode

Exchange = Generator[bytes, bytes, None]


def broker_is_wrong(mechanism: str, why: str) -> BrokerRefused:
    """Return the error for a broker whose answers are wrong."""
    return BrokerRefused(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        f"{mechanism}: the broker's side of the exchange does not hold: {why}",
        hint="either this is not the cluster you mean, or it does not know this password",
    )


def not_authenticated(message: str, hint: str) -> BrokerRefused:
    """Return the error for credentials that are missing or rejected before a broker is asked."""
    return BrokerRefused(ErrorCode.SASL_AUTHENTICATION_FAILED, message, hint=hint)


def secrets_in(token: bytes) -> list[str]:
    """Return how a server may repeat what a client sent: whole, in base64, and its secret alone."""
    text = token.decode(errors="replace")
    parts = text.replace("\x01", "\0").rstrip("\0").split("\0")
    return [text, b64encode(token).decode(), parts[-1], *(p.partition("Bearer ")[2] for p in parts)]


def redacted(said: str, secrets: Iterable[str]) -> str:
    """Return what a server said without the secrets, which it may repeat."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        said = said.replace(secret, "…")
    return said
