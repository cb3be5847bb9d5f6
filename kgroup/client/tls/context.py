"""TLS contexts of clients, and TLS failures put in words.

Imported only when the security protocol asks for it: the ssl module costs a noticeable part of a
command's start.
"""

import ssl

from kgroup.client.tls.values import Tls
from kgroup.errors import ConfigError
from kgroup.keystores.loading import reason, show, trust

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(tls: Tls) -> ssl.SSLContext:
    """Return a context that verifies the broker and, when a store is given, sends a client certificate.

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
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites: none of {tls.ciphers} is known here", "`openssl ciphers` lists the names"
            ) from None
    if tls.trust is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        trust(context, tls.trust)
    if tls.revoked:
        try:
            context.load_verify_locations(cafile=tls.revoked)
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.crl.location: {tls.revoked} cannot be used: {reason(error)}") from None
        except OSError as error:
            raise ConfigError(f"ssl.crl.location: {tls.revoked} cannot be read: {error.strerror}") from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if tls.identity is not None:
        show(context, tls.identity)
    return context


def hint_for(error: ssl.SSLError) -> str:
    """Return what to try after a failed handshake."""
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
