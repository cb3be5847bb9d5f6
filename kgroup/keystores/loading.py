"""Stores put into a TLS context, of a client or of a broker.

Imported only when the security protocol asks for it: the ssl module costs a noticeable part of a
command's start.
"""

from __future__ import annotations

import re
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kgroup.errors import ConfigError
from kgroup.keystores import jks
from kgroup.keystores.values import JKS, KINDS, PEM, PKCS12, Pem, PemPair, Store


def trust(context: ssl.SSLContext, source: Store | Pem) -> None:
    """Trust what the store or text trusts, in addition; ConfigError names it.

    As in Java, an authority in the middle of a chain or a peer's own certificate is enough.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    named = f"in {source.setting}" if isinstance(source, Pem) else f"from {source.location}"
    certificates: str | bytes
    if isinstance(source, Store):
        data = content_of(source)
        kind = kind_of(source, data)
        certificates = pem_text(source, data) if kind == PEM else b"".join(trusted_in(source, data, kind))
    else:
        certificates = source.text
    if isinstance(certificates, str):
        # OpenSSL's reader takes ASCII, and remarks around the blocks may be in any script.
        certificates = certificates.encode("ascii", "replace").decode()
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        said = reason(error) if isinstance(error, ssl.SSLError) else "it is not PEM"
        raise ConfigError(
            f"no certificate can be read {named}: {said}", "it must hold -----BEGIN CERTIFICATE----- blocks"
        ) from None


def show(context: ssl.SSLContext, identity: Store | PemPair) -> None:
    """Send this certificate chain, with its key; ConfigError if they cannot be used."""
    if isinstance(identity, PemPair):
        _show_pem(context, identity)
    else:
        data = content_of(identity)
        kind = kind_of(identity, data)
        if kind == PEM:
            _show_pem(context, PemPair(identity, key_password=identity.key_password))
        else:
            _show(context, identity_in(identity, data, kind), identity.location)


def _show_pem(context: ssl.SSLContext, pair: PemPair) -> None:
    certificate, key = pair.certificate, pair.key
    if isinstance(certificate, Store) and (key is None or isinstance(key, Store)):
        _show_files(context, certificate, key, pair.key_password)
        return
    # OpenSSL's reader of keys wants a file: the text is put into one under a random, unknown password.
    chain, secret = pem_text(certificate), pem_text(key or certificate)
    named = (key or certificate).setting
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.x509 import load_pem_x509_certificates

    try:
        certificates = load_pem_x509_certificates(chain.encode())
        password = (pair.key_password or "").encode() if "ENCRYPTED" in secret else None
        made = pem.load_pem_private_key(secret.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{named}: no private key and certificate chain can be read from it",
            "is the key encrypted? then check ssl.key.password; lines end with \\n\\ in a properties file",
        ) from None
    identity = Identity(
        made.private_bytes(pem.Encoding.DER, pem.PrivateFormat.PKCS8, pem.NoEncryption()),
        tuple(c.public_bytes(pem.Encoding.DER) for c in certificates),
    )
    _show(context, identity, named)


def _show_files(context: ssl.SSLContext, certificate: Store, key: Store | None, password: str | None) -> None:
    content = {file: content_of(file) for file in (certificate, key) if file is not None}
    for file, data in content.items():
        kind_of(file, data)
    at = Path(certificate.location).expanduser()
    key_at = Path(key.location).expanduser() if key else None
    try:
        # Always a callback: without one OpenSSL asks on the terminal when the key turns out encrypted.
        context.load_cert_chain(at, key_at, password=lambda: password or "")
    except ssl.SSLError as error:
        keyed = key or certificate
        if b"PRIVATE KEY-----" not in content[keyed]:
            hint = "it must hold a -----BEGIN PRIVATE KEY----- block"
            raise ConfigError(f"{keyed.setting}: {keyed.location} holds no private key", hint) from None
        if b"-----BEGIN CERTIFICATE" not in content[certificate]:
            hint = "it must hold -----BEGIN CERTIFICATE----- blocks"
            raise ConfigError(
                f"{certificate.setting}: {certificate.location} holds no certificate", hint
            ) from None
        raise (
            _still_locked(content[keyed], keyed, password)
            or ConfigError(
                f"certificate {at} and key {key_at or at} cannot be used: {reason(error)}",
                "do key and certificate belong together? the chain begins with the key's own certificate",
            )
        ) from None


def _still_locked(key: bytes, keyed: Store, password: str | None) -> ConfigError | None:
    """Return the error about an encrypted key that its password does not open; None if it does."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"ENCRYPTED" not in key:
        return None
    if not password:
        return ConfigError(
            f"{keyed.setting}: the private key in {keyed.location} is encrypted", "set ssl.key.password"
        )
    try:
        load_pem_private_key(key, password.encode())
    except ValueError:
        return ConfigError(
            f"{keyed.setting}: the password does not open the private key in {keyed.location}",
            "check ssl.key.password",
        )
    except UnsupportedAlgorithm:
        return None
    return None


def _show(context: ssl.SSLContext, identity: Identity, named: str) -> None:
    """Use an identity in memory: OpenSSL takes files only, so it gets an encrypted, short-lived one."""
    from cryptography.hazmat.primitives import serialization as pem

    try:
        key = pem.load_der_private_key(identity.key, None)
    except ValueError:
        raise ConfigError(f"{named}: its private key cannot be read") from None
    password = secrets.token_hex(16)
    locked = key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.BestAvailableEncryption(password.encode())
    )
    chain = "".join(ssl.DER_cert_to_PEM_cert(certificate) for certificate in identity.chain)
    # In a folder of its own: Windows opens no file a second time that is to vanish when closed.
    with tempfile.TemporaryDirectory(prefix="kgroup-") as folder:
        file = Path(folder) / "identity.pem"
        file.touch(mode=0o600)
        file.write_bytes(locked + chain.encode())
        try:
            context.load_cert_chain(file, password=password)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{named}: key and certificate cannot be used: {reason(error)}", "do they belong together?"
            ) from None


def reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in plain words, without source file and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    said = re.sub(r"\s*\(_?ssl\.c:\d+\)|^\[\w+\]\s*", "", error.reason or str(error))
    return said.replace("_", " ").lower()


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
    """Return the file's bytes; ConfigError names it when it cannot be read."""
    try:
        return Path(store.location).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"{store.setting}: {store.location} cannot be read: {error.strerror}") from None


def kind_of(store: Store, data: bytes) -> str:
    """Return PEM, PKCS12 or JKS, by the content; ConfigError if it is none, or not as claimed."""
    claimed = store.kind.upper() if store.kind else None
    if claimed is not None and claimed not in KINDS:
        raise ConfigError(
            f"{store.setting}: a store of type {store.kind} cannot be read",
            f"kgroup reads {', '.join(KINDS)}; {_CONVERT}",
        )
    if data.startswith(jks.JCEKS_MAGIC):
        raise ConfigError(f"{store.setting}: {store.location} is a JCEKS store", _CONVERT)
    if data.startswith(jks.MAGIC):
        kind = JKS
    elif data[:1] == b"\x30":
        kind = PKCS12
    elif b"-----BEGIN " in data:
        kind = PEM
    else:
        raise ConfigError(
            f"{store.setting}: {store.location} is neither PEM nor PKCS12 nor JKS",
            "does the property name the right file?",
        )
    if claimed is not None and (claimed == PEM) != (kind == PEM):
        type_setting = _TYPE.get(store.setting)
        if type_setting is None:
            java = (
                "ssl.truststore.location" if store.setting == "ssl.ca.location" else "ssl.keystore.location"
            )
            raise ConfigError(
                f"{store.setting}: {store.location} is {kind}, and this property takes PEM",
                f"name it in {java}, its password in {_PASSWORD[java]}",
            )
        raise ConfigError(
            f"{store.setting}: {store.location} is {kind}, and {type_setting} says {claimed}",
            f"set {type_setting}={kind}",
        )
    return kind


def trusted_in(store: Store, data: bytes, kind: str) -> tuple[bytes, ...]:
    """Return the certificates (DER) that a PKCS12 or JKS store trusts; ConfigError when there are none.

    Like Java, this trusts the key's own certificate of a key's entry.
    """
    if kind == JKS:
        keystore = _java(store, data)
        trusted = (*keystore.trusted, *(key.chain[0] for key in keystore.keys if key.chain))
    else:
        from cryptography.hazmat.primitives.serialization import Encoding

        bundle = _pkcs12(store, data)
        certificates = [*bundle.additional_certs, *([bundle.cert] if bundle.cert else [])]
        trusted = tuple(c.certificate.public_bytes(Encoding.DER) for c in certificates)
    if not trusted:
        raise ConfigError(
            f"{store.setting}: {store.location} holds no certificate to trust",
            "keytool -importcert -file CA.pem -keystore STORE adds one",
        )
    return trusted


def identity_in(store: Store, data: bytes, kind: str) -> Identity:
    """Return the first key of a PKCS12 or JKS store, unlocked, with its certificates; ConfigError if none."""
    if kind == PKCS12:
        from cryptography.hazmat.primitives import serialization as pem

        bundle = _pkcs12(store, data)
        if bundle.key is None or bundle.cert is None:
            raise _no_key(store)
        key = bundle.key.private_bytes(pem.Encoding.DER, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        certificates = [bundle.cert, *bundle.additional_certs]
        return Identity(key, tuple(c.certificate.public_bytes(pem.Encoding.DER) for c in certificates))
    keystore = _java(store, data)
    if not keystore.keys:
        raise _no_key(store)
    entry = keystore.keys[0]
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
    """Return the PEM text of a file or a property."""
    if isinstance(source, Pem):
        return source.text
    return (content_of(source) if data is None else data).decode("utf-8", "replace")
