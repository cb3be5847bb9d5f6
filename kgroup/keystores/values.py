"""Where keys and certificates are, as frozen values; no file is opened here."""

from dataclasses import dataclass, field

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
KINDS = (JKS, PKCS12, PEM)


@dataclass(frozen=True, slots=True)
class Store:
    """A file of certificates, or of keys with theirs; the content decides if `kind` is None.

    `setting` is the property that named it, for errors. A store's content shows whether it is PKCS12 or JKS,
    whichever of the two `kind` claims: Java reads either by either name.
    """

    location: str
    setting: str
    kind: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text in a property itself; `setting` names it. It may contain a key."""

    text: str = field(repr=False)
    setting: str


@dataclass(frozen=True, slots=True)
class PemPair:
    """A certificate chain and its key, each a file or PEM text; without `key` it has both."""

    certificate: Store | Pem
    key: Store | Pem | None = None
    key_password: str | None = field(default=None, repr=False)
