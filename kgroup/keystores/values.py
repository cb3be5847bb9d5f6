"""Where keys and certificates are, as frozen values; no file is opened here."""

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
