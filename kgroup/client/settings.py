"""How to reach and log in to a cluster, independent of where the values were written."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Everything a transport needs to open a connection; secrets are left out of `repr`.

    `bootstrap` holds (host, port) pairs; `security_protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or
    SASL_SSL; the `ssl_*_location` paths name PEM files, None meaning the system's trust store or no
    client certificate; `request_timeout_s` bounds one operation, retries included.
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
