"""How to reach a cluster: addresses and security, as one frozen value."""

from kgroup.client.security import PLAINTEXT, Security
from kgroup.domain import value
from kgroup.errors import ConfigError

DEFAULT_PORT = 9092


@value
class ConnectionSettings:
    """Addresses, security and limits of a remote cluster; ConfigError for an impossible combination.

    `request_timeout_s` is the budget of one request, connecting and authenticating included.
    `asks_versions` is off for brokers that may be older than ApiVersions (Kafka 0.10): they hang up when
    they are asked.
    """

    bootstrap: tuple[tuple[str, int], ...]
    security: Security = PLAINTEXT
    client_id: str = "kgroup"
    request_timeout_s: float = 30.0
    asks_versions: bool = True

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ConfigError("no broker address is given", "give one with --bootstrap-server HOST:PORT")
        if self.request_timeout_s <= 0:
            raise ConfigError(
                f"the request timeout must be above zero, not {self.request_timeout_s} s", "as --timeout 30s"
            )


def parse_bootstrap(text: str) -> tuple[tuple[str, int], ...]:
    """Return the addresses in "host:port,[::1]:9092,host" (port 9092 if missing), or ConfigError."""
    return tuple(_address(part.strip()) for part in text.split(",") if part.strip())


def _address(text: str) -> tuple[str, int]:
    bare = text.rpartition("://")[2]
    if bare.startswith("["):
        host, _, rest = bare[1:].partition("]")
        port = rest.removeprefix(":")
    elif bare.count(":") > 1:
        host, port = bare, ""
    else:
        host, _, port = bare.partition(":")
    number = port or str(DEFAULT_PORT)
    if not host or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 65536:
        raise ConfigError(f"{text!r} is not a broker address", "write HOST:PORT, or [IPV6]:PORT")
    return host, int(number)


def address_text(host: str, port: int) -> str:
    """Return host:port, with brackets if an IPv6 address needs them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
