"""How TLS is spoken: whom we trust and what we show, as frozen values; no file is opened here."""

from __future__ import annotations

from dataclasses import dataclass, field

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
KINDS = (JKS, PKCS12, PEM)


@dataclass(frozen=True, slots=True)
class Store:
    """A file of certificates, or of keys with theirs; `kind` None is told by the content.

    `setting` is the property that named it, as errors call it. A store says itself whether it is PKCS12
    or JKS, whichever of the two `kind` claims: Java reads either by either name.
    """

    location: str
    setting: str
    kind: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text in a property itself; `setting` names it. It may hold a key."""

    text: str = field(repr=False)
    setting: str


@dataclass(frozen=True, slots=True)
class PemPair:
    """A certificate chain and its key, each a file or PEM text; without `key` it holds both."""

    certificate: Store | Pem
    key: Store | Pem | None = None
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """What a connection is encrypted with, and who must be at the other end.

    `trust` None is the system's authorities. `oldest` and `newest` are TLS versions as Kafka writes them
    ("TLSv1.2"); `ciphers` is OpenSSL's list for TLS 1.2. Without `verify` anybody may answer: that is
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
