"""Key and trust stores as Kafka's settings name them, turned into what OpenSSL takes: PEM.

PEM files, PEM in the setting itself, and PKCS12. OpenSSL reads keys from files only: it gets them through one
of this user's that is gone before the call returns, encrypted with a password nobody else ever has.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

JKS_MAGIC = b"\xfe\xed\xfe\xed"
CONVERT = "keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12 makes one"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key, encrypted with `password`, with its certificate and those that signed it, in PEM."""

    key: bytes = field(repr=False)
    password: bytes = field(repr=False)
    chain: bytes

    def load_into(self, context: ssl.SSLContext, where: str) -> None:
        """Show this certificate from now on; ConfigError if key and certificate do not belong together."""
        handle, name = tempfile.mkstemp(prefix="kgroup-tls-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.key + b"\n" + self.chain)
            context.load_cert_chain(name, password=self.password)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{where}: key and certificate cannot be used: {_reason(error)}",
                "do they belong together? The chain begins with the broker's own certificate",
            ) from None
        finally:
            os.unlink(name)


def identity(setting: Callable[[str], str | None], where: str) -> Identity:
    """Key and certificate of `ssl.keystore.*`; `setting` gives a setting's value by its name."""
    password = setting("ssl.keystore.password")
    key_password = setting("ssl.key.password")
    inline = setting("ssl.keystore.key")
    if inline is not None:
        chain = setting("ssl.keystore.certificate.chain")
        if chain is None:
            raise ConfigError(f"{where}: ssl.keystore.key comes with ssl.keystore.certificate.chain")
        chain_pem = _certificates_in(chain.encode(), "ssl.keystore.certificate.chain")
        return _identity(_key(inline.encode(), key_password, "ssl.keystore.key"), chain_pem)
    location = setting("ssl.keystore.location")
    if location is None:
        raise ConfigError(
            f"{where} speaks TLS and has no certificate",
            "set ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain",
        )
    data, kind = _read(location, setting("ssl.keystore.type"), "ssl.keystore.location")
    if kind == "PEM":
        return _identity(_key(data, key_password, location), _certificates_in(data, location))
    return _from_pkcs12(data, password, location)


def authorities(setting: Callable[[str], str | None]) -> str | None:
    """The certificates of `ssl.truststore.*` in PEM; None where none are named."""
    inline = setting("ssl.truststore.certificates")
    if inline is not None:
        return _certificates_in(inline.encode(), "ssl.truststore.certificates").decode()
    location = setting("ssl.truststore.location")
    if location is None:
        return None
    data, kind = _read(location, setting("ssl.truststore.type"), "ssl.truststore.location")
    if kind == "PEM":
        return _certificates_in(data, location).decode()
    return _trusted_in_pkcs12(data, setting("ssl.truststore.password"), location)


def _read(location: str, kind: str | None, setting: str) -> tuple[bytes, str]:
    """A store's bytes and its kind: what they are decides, whatever the setting says of PKCS12 and JKS."""
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {location} cannot be read: {error.strerror}") from None
    if data.startswith(JKS_MAGIC):
        raise ConfigError(f"{setting}: {location} is a JKS store; a PKCS12 or PEM store is needed", CONVERT)
    looks = "PKCS12" if data[:1] == b"\x30" else "PEM"
    if kind is not None and kind.upper() not in ("PEM", "PKCS12", "JKS"):
        raise ConfigError(f"{setting}: the store type {kind} is not known", "PKCS12 and PEM are")
    if kind is not None and (kind.upper() == "PEM") != (looks == "PEM"):
        raise ConfigError(f"{setting}: {location} is not {kind.upper()}", f"it looks like {looks}")
    return data, looks


def _identity(key: PrivateKeyTypes, chain: bytes) -> Identity:
    from cryptography.hazmat.primitives import serialization as forms

    password = secrets.token_hex().encode()
    locked = forms.BestAvailableEncryption(password)
    return Identity(key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, locked), password, chain)


def _key(pem: bytes, password: str | None, where: str) -> PrivateKeyTypes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as forms

    block = _key_block(pem, where)
    given = password.encode() if password and b"ENCRYPTED" in block else None
    try:
        return forms.load_pem_private_key(block, given)
    except TypeError:
        raise ConfigError(f"{where}: the private key is encrypted", "set ssl.key.password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{where}: the private key cannot be read", "is ssl.key.password right? Keys are in PKCS#8 PEM"
        ) from None


def _key_block(pem: bytes, where: str) -> bytes:
    begin, end = pem.find(b"-----BEGIN"), 0
    while begin >= 0:
        end = pem.find(b"-----END", begin)
        end = pem.find(b"-----", end + 8) if end >= 0 else -1
        if end < 0:
            break
        block = pem[begin : end + 5]
        if b"PRIVATE KEY-----" in block[:60]:
            return block + b"\n"
        begin = pem.find(b"-----BEGIN", end)
    raise ConfigError(
        f"{where}: there is no private key in it", "a PEM key store holds the key and its chain"
    )


def _certificates_in(pem: bytes, where: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    try:
        found = load_pem_x509_certificates(pem)
    except ValueError:
        raise ConfigError(f"{where}: there is no certificate in it that can be read") from None
    return b"".join(each.public_bytes(Encoding.PEM) for each in found)


def _from_pkcs12(data: bytes, password: str | None, where: str) -> Identity:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(data, password.encode() if password else None)
    except ValueError:
        raise _closed(where, "ssl.keystore.password", password) from None
    if store.key is None or store.cert is None:
        raise ConfigError(f"{where}: there is no private key with its certificate in it")
    chain = [store.cert.certificate, *(each.certificate for each in store.additional_certs)]
    return _identity(store.key, b"".join(each.public_bytes(Encoding.PEM) for each in chain))


def _trusted_in_pkcs12(data: bytes, password: str | None, where: str) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(data, password.encode() if password else None)
    except ValueError:
        raise _closed(where, "ssl.truststore.password", password) from None
    found = [each.certificate for each in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    if not found:
        raise ConfigError(f"{where}: there is no certificate in it")
    return b"".join(each.public_bytes(Encoding.PEM) for each in found).decode()


def _closed(where: str, setting: str, password: str | None) -> ConfigError:
    hint = f"is {setting} right?" if password else f"set {setting}"
    return ConfigError(f"{where} cannot be opened as PKCS12", hint)


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
