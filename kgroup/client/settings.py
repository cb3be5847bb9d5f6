"""How to reach a cluster: addresses and security, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgroup.errors import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Addresses, security and limits of a remote cluster; ConfigError for a combination that cannot work.

    The `ssl_*_location` fields name PEM files. `request_timeout_s` is the budget of one request,
    connecting and authenticating included. Passwords never show in `repr`. `asks_versions` is off for
    brokers that may be older than ApiVersions (Kafka 0.10): they hang up when they are asked.
    """

    bootstrap: tuple[tuple[str, int], ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_endpoint_identification: bool = True
    client_id: str = "kgroup"
    request_timeout_s: float = 30.0
    asks_versions: bool = True

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ConfigError("no broker address given", "give one with --bootstrap-server HOST:PORT")
        if self.security_protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"unknown security.protocol {self.security_protocol!r}",
                "one of " + ", ".join(SECURITY_PROTOCOLS),
            )
        if self.request_timeout_s <= 0:
            raise ConfigError(f"the request timeout must be above zero, not {self.request_timeout_s} s")
        if self.uses_sasl:
            self._check_sasl()
        if self.ssl_key_location and not self.ssl_certificate_location:
            raise ConfigError("a TLS key without its certificate", "set ssl.certificate.location too")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates with SASL."""
        return self.security_protocol.startswith("SASL_")

    def _check_sasl(self) -> None:
        if self.sasl_mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                f"kgroup cannot authenticate with sasl.mechanism {self.sasl_mechanism or '(not set)'}",
                "supported: " + ", ".join(SASL_MECHANISMS),
            )
        if not self.sasl_username or self.sasl_password is None:
            raise ConfigError(
                f"{self.sasl_mechanism} needs a user name and a password",
                "set sasl.username and sasl.password, or sasl.jaas.config",
            )


def parse_bootstrap(text: str) -> tuple[tuple[str, int], ...]:
    """The addresses in "host:port,[::1]:9092,host"; a missing port is 9092; ConfigError names a bad one."""
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
    """host:port, with brackets where an IPv6 address needs them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
