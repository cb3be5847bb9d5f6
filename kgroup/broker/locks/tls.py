"""TLS contexts of listeners."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from kgroup.broker.locks.stores import authorities, identity
from kgroup.errors import ConfigError

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(setting: Callable[[str], str | None], client_auth: str, where: str) -> ssl.SSLContext:
    """A context that shows the listener's certificate and asks clients for theirs as `client_auth` says.

    `setting` gives a setting's value by its name. ConfigError names the setting or file that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _versions(setting("ssl.enabled.protocols"))
    identity(setting, where).load_into(context, where)
    trusted = authorities(setting)
    if client_auth not in CLIENT_AUTH:
        raise ConfigError(f"ssl.client.auth={client_auth}: none, requested and required are known")
    if client_auth != "none":
        if trusted is None:
            raise ConfigError(
                f"{where}: ssl.client.auth={client_auth} without certificates to check those of clients",
                "set ssl.truststore.location or ssl.truststore.certificates",
            )
        context.load_verify_locations(cadata=trusted)
        # a trust store may hold certificates of clients themselves, as Java's do
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = CLIENT_AUTH[client_auth]
    return context


def _versions(text: str | None) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = [name.strip() for name in text.split(",") if name.strip()] if text else list(VERSIONS)
    unknown = [name for name in names if name not in VERSIONS]
    if unknown or not names:
        raise ConfigError(
            f"ssl.enabled.protocols={text}: {', '.join(unknown) or 'nothing'} is not served",
            "TLSv1.2 and TLSv1.3 are",
        )
    chosen = [VERSIONS[name] for name in names]
    return min(chosen), max(chosen)


def reason(error: Exception) -> str:
    """Why a handshake failed, in plain words, without OpenSSL's source file and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(error) or type(error).__name__
