"""TLS settings: what we trust and what we send, as frozen values; no file is opened here."""

from dataclasses import dataclass

from kgroup.keystores.values import Pem, PemPair, Store


@dataclass(frozen=True, slots=True)
class Tls:
    """The encryption of a connection, and the identity required at the other end.

    `trust` None is the system's authorities. `oldest` and `newest` are TLS versions as Kafka writes them
    ("TLSv1.2"); `ciphers` is OpenSSL's list for TLS 1.2. Without `verify` any server may answer: that is
    librdkafka's enable.ssl.certificate.verification=false.
    """

    trust: Store | Pem | None = None
    identity: Store | PemPair | None = None
    endpoint_identification: bool = True
    verify: bool = True
    revoked: str | None = None
    oldest: str = "TLSv1.2"
    newest: str = "TLSv1.3"
    ciphers: str | None = None
