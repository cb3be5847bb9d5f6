"""TLS contexts of listeners."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from kgroup.errors import ConfigError
from kgroup.keystores.loading import show, trust
from kgroup.keystores.values import Pem, PemPair, Store

Setting = Callable[[str], str | None]
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(setting: Setting, client_auth: str, where: str) -> ssl.SSLContext:
    """Return a context with the listener's certificate that asks for clients' as `client_auth` says.

    `setting` returns a setting's value by name. ConfigError names the setting or file that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    text = setting("ssl.enabled.protocols")
    names = [name.strip() for name in text.split(",") if name.strip()] if text else list(VERSIONS)
    unknown = [name for name in names if name not in VERSIONS]
    if unknown or not names:
        raise ConfigError(
            f"ssl.enabled.protocols={text}: {', '.join(unknown) or 'nothing'} is not served",
            "TLSv1.2 and TLSv1.3 are",
        )
    chosen = [VERSIONS[name] for name in names]
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    show(context, _identity(setting, where))
    trusted: Store | Pem | None = None
    certificates, location = setting("ssl.truststore.certificates"), setting("ssl.truststore.location")
    if certificates is not None:
        trusted = Pem(certificates, "ssl.truststore.certificates")
    elif location is not None:
        kind, password = setting("ssl.truststore.type"), setting("ssl.truststore.password")
        trusted = Store(location, "ssl.truststore.location", kind, password)
    if trusted is not None:
        trust(context, trusted)
    if client_auth not in CLIENT_AUTH:
        raise ConfigError(f"ssl.client.auth={client_auth}; it must be none, requested or required")
    if client_auth != "none" and trusted is None:
        raise ConfigError(
            f"{where}: ssl.client.auth={client_auth} without certificates to check those of clients",
            "set ssl.truststore.location or ssl.truststore.certificates",
        )
    context.verify_mode = CLIENT_AUTH[client_auth]
    return context


def _identity(setting: Setting, where: str) -> Store | PemPair:
    key_password = setting("ssl.key.password")
    key, chain = setting("ssl.keystore.key"), setting("ssl.keystore.certificate.chain")
    if key is not None:
        if chain is None:
            raise ConfigError(f"{where}: ssl.keystore.key comes with ssl.keystore.certificate.chain")
        return PemPair(
            Pem(chain, "ssl.keystore.certificate.chain"), Pem(key, "ssl.keystore.key"), key_password
        )
    location = setting("ssl.keystore.location")
    if location is None:
        raise ConfigError(
            f"{where} speaks TLS and has no certificate",
            "set ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain",
        )
    kind, password = setting("ssl.keystore.type"), setting("ssl.keystore.password")
    return Store(location, "ssl.keystore.location", kind, password, key_password)


def reason(error: Exception) -> str:
    """Return why a handshake failed, without OpenSSL's source file and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(error) or type(error).__name__
