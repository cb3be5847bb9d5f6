"""A client's properties as one `Security`: Java's names and librdkafka's, both at once where they differ."""

from __future__ import annotations

from kgroup.client.properties.catalogue import AS_DEFAULT, REFUSED
from kgroup.client.properties.given import Given
from kgroup.client.properties.sasl import credentials_of
from kgroup.client.properties.tls import tls_of
from kgroup.client.security import PLAINTEXT, PROTOCOLS, Security
from kgroup.errors import ConfigError

# Classes that a Java client is pointed to, and whose work is done here, by the last part of their name.
_CLASSES = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
        "IAMOAuthBearerLoginCallbackHandler",
        "IAMClientCallbackHandler",
    ),
    "sasl.client.callback.handler.class": (
        "IAMClientCallbackHandler",
        "OAuthBearerSaslClientCallbackHandler",
        "SaslClientCallbackHandler",
    ),
    "sasl.login.class": ("DefaultLogin", "KerberosLogin", "OAuthBearerRefreshingLogin"),
    "sasl.oauthbearer.jwt.retriever.class": (
        "DefaultJwtRetriever",
        "FileJwtRetriever",
        "ClientCredentialsJwtRetriever",
        "JwtBearerJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": ("DefaultJwtValidator", "ClientJwtValidator"),
}


def security_of(given: Given) -> Security:
    """How the connection is secured; ConfigError names the property that cannot be used, and what to use.

    No store is opened and nobody is asked.
    """
    protocol = (given.get("security.protocol") or "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"{given.named('security.protocol')}={protocol} is unknown", "one of " + ", ".join(PROTOCOLS)
        )
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    _refuse(given, "ssl." if protocol == "SSL" else "sasl." if protocol == "SASL_PLAINTEXT" else "")
    tls = credentials = None
    if protocol in ("SSL", "SASL_SSL"):
        tls = tls_of(given)
    if protocol.startswith("SASL_"):
        credentials = credentials_of(given)
    return Security(tls, credentials)


def _refuse(given: Given, prefix: str) -> None:
    """ConfigError for what would change who is trusted or who we are, and cannot be done here."""
    for name, why in REFUSED.items():
        value = given.get(name)
        if value and name.startswith((prefix, "security.")) and value.strip() not in AS_DEFAULT.get(name, ()):
            raise ConfigError(f"{given.named(name)} cannot be used here", why)
    if given.get("config.providers"):
        _refuse_placeholders(given)
    for name, known in _CLASSES.items():
        value = given.get(name)
        if value and name.startswith(prefix) and value.strip().rpartition(".")[2] not in known:
            instead = (
                "let sasl.oauthbearer.token-command print the token" if "login" in name else "leave it out"
            )
            raise ConfigError(
                f"{given.named(name)} names a Java class that kgroup cannot run",
                f"known: {', '.join(known)}; for another, {instead}",
            )


def _refuse_placeholders(given: Given) -> None:
    """ConfigError for a value that a Java class would fill in: sent as it is, it is a wrong password."""
    for name, value in given.values.items():
        if name.startswith(("ssl.", "sasl.")) and "${" in value:
            raise ConfigError(
                f"{given.named(name)} is filled in by config.providers, Java classes that kgroup cannot run",
                f"{name}-env=VARIABLE or {name}-command=COMMAND fetches it",
            )
