"""TLS contexts from stores, and TLS failures put in words.

Imported only when the security protocol asks for it: the ssl module costs a noticeable part of a
command's start.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from kgroup.client.stores.reading import (
    Identity,
    content_of,
    identity_in,
    kind_of,
    pem_text,
    trusted_in,
)
from kgroup.client.stores.values import PEM, Pem, PemPair, Store, Tls
from kgroup.errors import ConfigError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(tls: Tls) -> ssl.SSLContext:
    """A context that verifies the broker and, when a store is given, shows a client certificate.

    Without `trust` the system's authorities are trusted; what a store trusts is trusted as it is in Java,
    be it an authority in the middle of a chain or the broker's own certificate. ConfigError names the
    property and the file that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.endpoint_identification and tls.verify
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version, context.maximum_version = _VERSIONS[tls.oldest], _VERSIONS[tls.newest]
    if tls.ciphers:
        _choose_ciphers(context, tls.ciphers)
    if tls.trust is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(context, tls.trust)
    if tls.revoked:
        _load_revocations(context, tls.revoked)
    if isinstance(tls.identity, PemPair):
        _show_pem(context, tls.identity)
    elif tls.identity is not None:
        _show_store(context, tls.identity)
    return context


def _choose_ciphers(context: ssl.SSLContext, ciphers: str) -> None:
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.cipher.suites: none of {ciphers} is known here", "`openssl ciphers` lists the names"
        ) from None


def _trust(context: ssl.SSLContext, trust: Store | Pem) -> None:
    named = f"in {trust.setting}" if isinstance(trust, Pem) else f"from {trust.location}"
    certificates: str | bytes
    if isinstance(trust, Store):
        data = content_of(trust)
        kind = kind_of(trust, data)
        certificates = pem_text(trust, data) if kind == PEM else b"".join(trusted_in(trust, data, kind))
    else:
        certificates = trust.text
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


def _load_revocations(context: ssl.SSLContext, location: str) -> None:
    try:
        context.load_verify_locations(cafile=location)
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.crl.location: {location} cannot be used: {reason(error)}") from None
    except OSError as error:
        raise ConfigError(f"ssl.crl.location: {location} cannot be read: {error.strerror}") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _show_store(context: ssl.SSLContext, store: Store) -> None:
    data = content_of(store)
    kind = kind_of(store, data)
    if kind == PEM:
        _show_pem(context, PemPair(store, key_password=store.key_password))
    else:
        _show(context, identity_in(store, data, kind), store.location)


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
    for file in (certificate, key):
        if file is not None:
            kind_of(file, content_of(file))
    at = Path(certificate.location).expanduser()
    key_at = Path(key.location).expanduser() if key else None
    try:
        # Always a callback: without one OpenSSL asks on the terminal when the key turns out encrypted.
        context.load_cert_chain(at, key_at, password=lambda: password or "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"certificate {at} and key {key_at or at} cannot be used: {reason(error)}",
            "is the key encrypted? then set ssl.key.password; do key and certificate belong together?",
        ) from None


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
    import secrets
    import tempfile

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
    return (error.reason or str(error)).replace("_", " ").lower()


def hint_for(error: ssl.SSLError) -> str:
    """What to try after a failed handshake."""
    text = reason(error).lower()
    if isinstance(error, ssl.SSLCertVerificationError):
        if "hostname" in text or "ip address" in text:
            return "connect by a name in the certificate, or set ssl.endpoint.identification.algorithm=none"
        if "expired" in text or "not yet valid" in text:
            return (
                "the broker's certificate has to be renewed, unless this machine's clock is wrong (date -u)"
            )
        if "revoked" in text or "crl" in text:
            return "ssl.crl.location must hold the current list of the broker's authority"
        return "trust the broker's authority with ssl.truststore.location or ssl.ca.location (PEM)"
    if "expired" in text:
        return "the broker finds our certificate expired: renew it, and check this machine's clock (date -u)"
    if "unknown ca" in text:
        return (
            "the broker does not trust our certificate's authority: is this the key store for this cluster?"
        )
    if "certificate required" in text or "handshake failure" in text or "bad certificate" in text:
        return (
            "the broker wants a client certificate it trusts: set ssl.keystore.location, or "
            "ssl.certificate.location and ssl.key.location"
        )
    if "protocol version" in text or "unsupported protocol" in text or "no protocols" in text:
        return "broker and client have no TLS version in common: check ssl.enabled.protocols"
    return "is this a TLS listener? check the port and security.protocol"
