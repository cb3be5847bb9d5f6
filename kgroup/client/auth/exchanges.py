"""What a SASL mechanism is here: a generator of tokens, no socket, no Kafka message.

It yields what the client says and is sent what the broker answered, and ends when the client is satisfied.
"""

from base64 import b64encode
from collections.abc import Generator, Iterable

from kgroup.errors import BrokerRefused, ErrorCode

Exchange = Generator[bytes, bytes, None]


def broker_is_wrong(mechanism: str, why: str) -> BrokerRefused:
    """For a broker whose side of the exchange does not hold."""
    return BrokerRefused(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        f"{mechanism}: the broker's side of the exchange does not hold: {why}",
        hint="either this is not the cluster you mean, or it does not know this password",
    )


def not_authenticated(message: str, hint: str) -> BrokerRefused:
    """For credentials that cannot be had, or are not taken, before a broker is asked."""
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
