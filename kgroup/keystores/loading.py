"""Stores put into a TLS context, of a client or of a broker.

Imported only when the security protocol asks for it: the ssl module costs a noticeable part of a
command's start.
"""

from __future__ import annotations

import re
import secrets
import ssl
import tempfile
from pathlib import Path

from kgroup.errors import ConfigError
from kgroup.keystores.reading import (
    Identity,
    content_of,
    identity_in,
    kind_of,
    pem_text,
    trusted_in,
)
from kgroup.keystores.values import PEM, Pem, PemPair, Store


def trust(context: ssl.SSLContext, source: Store | Pem) -> None:
    """Whoever the store or text trusts is trusted from now on, in addition; ConfigError names it.

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
    try:
        context.load_verify_locations(cadata=_ascii(certificates))
    except (ssl.SSLError, ValueError) as error:
        said = reason(error) if isinstance(error, ssl.SSLError) else "it is not PEM"
        raise ConfigError(
            f"no certificate can be read {named}: {said}", "it must hold -----BEGIN CERTIFICATE----- blocks"
        ) from None


def _ascii(certificates: str | bytes) -> str | bytes:
    """PEM may have remarks in any script around its blocks; OpenSSL's reader takes ASCII."""
    return certificates.encode("ascii", "replace").decode() if isinstance(certificates, str) else certificates


def show(context: ssl.SSLContext, identity: Store | PemPair) -> None:
    """This key and its certificates are shown from now on; ConfigError if they cannot be used."""
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
    # OpenSSL's reader of keys wants a file: the text is put into one under a password that nobody knows.
    chain, secret = pem_text(certificate), pem_text(key or certificate)
    named = (key or certificate).setting
    _show(context, _identity_of_pem(chain, secret, pair.key_password, named), named)


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
        raise (
            _no_such_block(content[certificate], content[keyed], certificate, keyed)
            or _still_locked(content[keyed], keyed, password)
            or ConfigError(
                f"certificate {at} and key {key_at or at} cannot be used: {reason(error)}",
                "do key and certificate belong together? the chain begins with the key's own certificate",
            )
        ) from None


def _no_such_block(chain: bytes, key: bytes, certificate: Store, keyed: Store) -> ConfigError | None:
    if b"PRIVATE KEY-----" not in key:
        hint = "it must hold a -----BEGIN PRIVATE KEY----- block"
        return ConfigError(f"{keyed.setting}: {keyed.location} holds no private key", hint)
    if b"-----BEGIN CERTIFICATE" not in chain:
        hint = "it must hold -----BEGIN CERTIFICATE----- blocks"
        return ConfigError(f"{certificate.setting}: {certificate.location} holds no certificate", hint)
    return None


def _still_locked(key: bytes, keyed: Store, password: str | None) -> ConfigError | None:
    """The error about an encrypted key that its password, or none, does not open; None where it opens."""
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


def _identity_of_pem(chain: str, key: str, password: str | None, named: str) -> Identity:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.x509 import load_pem_x509_certificates

    try:
        certificates = load_pem_x509_certificates(chain.encode())
        locked = "ENCRYPTED" in key
        made = pem.load_pem_private_key(key.encode(), (password or "").encode() if locked else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{named}: no private key and certificate chain can be read from it",
            "is the key encrypted? then check ssl.key.password; lines end with \\n\\ in a properties file",
        ) from None
    return Identity(
        made.private_bytes(pem.Encoding.DER, pem.PrivateFormat.PKCS8, pem.NoEncryption()),
        tuple(c.public_bytes(pem.Encoding.DER) for c in certificates),
    )


def _show(context: ssl.SSLContext, identity: Identity, named: str) -> None:
    """Show an identity in memory: OpenSSL takes files only, so it gets one that is locked, and then gone."""
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
    """OpenSSL's reason in plain words, without source file and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    said = re.sub(r"\s*\(_?ssl\.c:\d+\)|^\[\w+\]\s*", "", error.reason or str(error))
    return said.replace("_", " ").lower()
