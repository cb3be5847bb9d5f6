"""Key and trust stores opened: PEM, PKCS12 and JKS, from files or from the text of a property.

ConfigError names the property and the file, and says what to do; never a password.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgroup.errors import ConfigError
from kgroup.keystores import jks
from kgroup.keystores.values import JKS, KINDS, PEM, PKCS12, Pem, Store

_PASSWORD = {
    "ssl.keystore.location": "ssl.keystore.password",
    "ssl.truststore.location": "ssl.truststore.password",
}
_TYPE = {"ssl.keystore.location": "ssl.keystore.type", "ssl.truststore.location": "ssl.truststore.type"}
_CONVERT = "keytool -importkeystore -deststoretype PKCS12 makes one that can be read"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key (PKCS#8, DER) and its certificates (DER), its own first."""

    key: bytes
    chain: tuple[bytes, ...]


def content_of(store: Store) -> bytes:
    """The file's bytes; ConfigError names it when it cannot be read."""
    try:
        return Path(store.location).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"{store.setting}: {store.location} cannot be read: {error.strerror}") from None


def kind_of(store: Store, data: bytes) -> str:
    """PEM, PKCS12 or JKS, told by the content; ConfigError when it is none, or not as claimed."""
    claimed = store.kind.upper() if store.kind else None
    if claimed is not None and claimed not in KINDS:
        raise ConfigError(
            f"{store.setting}: a store of type {store.kind} cannot be read",
            f"kgroup reads {', '.join(KINDS)}; {_CONVERT}",
        )
    if data.startswith(jks.JCEKS_MAGIC):
        raise ConfigError(f"{store.setting}: {store.location} is a JCEKS store", _CONVERT)
    found = _kind_seen(data)
    if found is None:
        raise ConfigError(
            f"{store.setting}: {store.location} is neither PEM nor PKCS12 nor JKS",
            "does the property name the right file?",
        )
    if claimed is not None and (claimed == PEM) != (found == PEM):
        type_setting = _TYPE.get(store.setting)
        if type_setting is None:
            java = (
                "ssl.truststore.location" if store.setting == "ssl.ca.location" else "ssl.keystore.location"
            )
            raise ConfigError(
                f"{store.setting}: {store.location} is {found}, and this property takes PEM",
                f"name it in {java}, its password in {_PASSWORD[java]}",
            )
        raise ConfigError(
            f"{store.setting}: {store.location} is {found}, and {type_setting} says {claimed}",
            f"set {type_setting}={found}",
        )
    return found


def _kind_seen(data: bytes) -> str | None:
    if data.startswith(jks.MAGIC):
        return JKS
    if data[:1] == b"\x30":
        return PKCS12
    return PEM if b"-----BEGIN " in data else None


def trusted_in(store: Store, data: bytes, kind: str) -> tuple[bytes, ...]:
    """The certificates (DER) that a PKCS12 or JKS store trusts; ConfigError when there are none.

    Of a key's entry Java trusts the key's own certificate and so does this.
    """
    if kind == JKS:
        found = _java(store, data)
        trusted = (*found.trusted, *(key.chain[0] for key in found.keys if key.chain))
    else:
        trusted = _trusted_in_pkcs12(store, data)
    if not trusted:
        raise ConfigError(
            f"{store.setting}: {store.location} holds no certificate to trust",
            "keytool -importcert -file CA.pem -keystore STORE adds one",
        )
    return trusted


def identity_in(store: Store, data: bytes, kind: str) -> Identity:
    """The first key of a PKCS12 or JKS store, unlocked, with its certificates; ConfigError if none."""
    if kind == PKCS12:
        return _identity_in_pkcs12(store, data)
    found = _java(store, data)
    if not found.keys:
        raise _no_key(store)
    entry = found.keys[0]
    password = store.key_password if store.key_password is not None else store.password
    if password is None:
        raise ConfigError(
            f"{store.setting}: the key in {store.location} has a password", "set ssl.keystore.password"
        )
    try:
        return Identity(jks.unlock(entry, password), entry.chain)
    except jks.WrongPassword:
        raise ConfigError(
            f"{store.setting}: the password does not open the key {entry.alias!r} in {store.location}",
            "a key with a password of its own wants it in ssl.key.password",
        ) from None
    except ValueError as error:
        raise _damaged(store, error) from None


def _java(store: Store, data: bytes) -> jks.JavaStore:
    try:
        return jks.parse(data, store.password)
    except jks.WrongPassword:
        raise _wrong_password(store) from None
    except ValueError as error:
        raise _damaged(store, error) from None


def _identity_in_pkcs12(store: Store, data: bytes) -> Identity:
    from cryptography.hazmat.primitives import serialization as pem

    found = _pkcs12(store, data)
    if found.key is None or found.cert is None:
        raise _no_key(store)
    key = found.key.private_bytes(pem.Encoding.DER, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    certificates = [found.cert, *found.additional_certs]
    return Identity(key, tuple(c.certificate.public_bytes(pem.Encoding.DER) for c in certificates))


def _trusted_in_pkcs12(store: Store, data: bytes) -> tuple[bytes, ...]:
    from cryptography.hazmat.primitives.serialization import Encoding

    found = _pkcs12(store, data)
    certificates = [*found.additional_certs, *([found.cert] if found.cert else [])]
    return tuple(c.certificate.public_bytes(Encoding.DER) for c in certificates)


def _pkcs12(store: Store, data: bytes):  # type: ignore[no-untyped-def]
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    # No password and an empty one differ: without one nothing is encrypted and nothing is signed.
    password = store.password.encode() if store.password is not None else None
    try:
        return load_pkcs12(data, password)
    except UnsupportedAlgorithm as error:
        raise ConfigError(
            f"{store.setting}: {store.location} is protected in a way this OpenSSL does not know: {error}",
            _CONVERT,
        ) from None
    except ValueError:
        raise _wrong_password(store) from None


def _wrong_password(store: Store) -> ConfigError:
    setting = _PASSWORD.get(store.setting, "ssl.keystore.password")
    if store.password is None:
        return ConfigError(f"{store.setting}: {store.location} wants a password", f"set {setting}")
    return ConfigError(
        f"{store.setting}: the password does not open {store.location}, or the file is damaged",
        f"check {setting}",
    )


def _damaged(store: Store, error: ValueError) -> ConfigError:
    return ConfigError(
        f"{store.setting}: {store.location} cannot be read: {error}", "keytool -list -keystore STORE"
    )


def _no_key(store: Store) -> ConfigError:
    return ConfigError(
        f"{store.setting}: {store.location} holds no private key",
        "is this the trust store? keytool -list -keystore STORE shows PrivateKeyEntry for a key",
    )


def pem_text(source: Store | Pem, data: bytes | None = None) -> str:
    """The PEM text of a file or a property."""
    if isinstance(source, Pem):
        return source.text
    return (content_of(source) if data is None else data).decode("utf-8", "replace")
