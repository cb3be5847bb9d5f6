"""TLS contexts from PEM files, and TLS failures put in words.

Imported only when the security protocol asks for it: the ssl module costs a noticeable part of a
command's start.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from kgroup.client.settings import ConnectionSettings
from kgroup.errors import ConfigError


def client_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """A context that verifies the broker and, when files are given, shows a client certificate.

    Without `ssl_ca_location` the system's authorities are trusted. ConfigError names the file that
    cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.ssl_endpoint_identification
    if settings.ssl_ca_location:
        _load_authorities(context, settings.ssl_ca_location)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if settings.ssl_certificate_location:
        _load_certificate(context, settings)
    return context


def _load_authorities(context: ssl.SSLContext, location: str) -> None:
    _check_is_pem(location, "ssl.ca.location")
    try:
        context.load_verify_locations(cafile=location)
    except ssl.SSLError as error:
        raise ConfigError(f"no certificate can be read from {location}: {reason(error)}") from None


def _load_certificate(context: ssl.SSLContext, settings: ConnectionSettings) -> None:
    certificate = settings.ssl_certificate_location or ""
    key = settings.ssl_key_location
    _check_is_pem(certificate, "ssl.certificate.location")
    if key:
        _check_is_pem(key, "ssl.key.location")
    try:
        # Always a callback: without one OpenSSL asks on the terminal when the key turns out encrypted.
        context.load_cert_chain(certificate, key, password=lambda: settings.ssl_key_password or "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"certificate {certificate} and key {key or certificate} cannot be used: {reason(error)}",
            "is the key encrypted? then set ssl.key.password; do key and certificate belong together?",
        ) from None


def _check_is_pem(location: str, setting: str) -> None:
    try:
        head = Path(location).read_bytes()[:8]
    except OSError as error:
        raise ConfigError(f"{setting}: {location} cannot be read: {error.strerror}") from None
    if head[:4] == b"\xfe\xed\xfe\xed" or head[:1] == b"\x30":
        kind = "a Java key store" if head[:1] == b"\xfe" else "PKCS#12 or DER"
        raise ConfigError(
            f"{setting}: {location} is {kind}; kgroup reads PEM",
            "convert it: keytool -importkeystore -deststoretype PKCS12 …, then openssl pkcs12 -nodes",
        )


def reason(error: ssl.SSLError) -> str:
    """OpenSSL's reason in plain words, without source file and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    return (error.reason or str(error)).replace("_", " ").lower()


def hint_for(error: ssl.SSLError) -> str:
    """What to try after a failed handshake."""
    text = reason(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        if "hostname" in text.lower() or "ip address" in text.lower():
            return "connect by a name in the certificate, or set ssl.endpoint.identification.algorithm=none"
        return "trust the broker's authority with ssl.ca.location=FILE (PEM)"
    if "certificate required" in text or "handshake failure" in text or "bad certificate" in text:
        return "the broker wants a client certificate: set ssl.certificate.location and ssl.key.location"
    return "is this a TLS listener? check the port and security.protocol"
