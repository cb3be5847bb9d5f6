"""A listener made ready: its settings with the TLS context, the mechanisms and the rules for names."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgroup.broker.authentication.mechanisms import exchanges, login_module
from kgroup.broker.authentication.settings import ListenerSettings
from kgroup.broker.authentication.tls import server_context
from kgroup.broker.authentication.tokens import SignedTokens, token_validator
from kgroup.errors import ConfigError
from kgroup.extras import require_extra
from kgroup.runtime.credentials import Credentials
from kgroup.security.principal_mapping import DEFAULT_RULES, PrincipalMapping

if TYPE_CHECKING:
    from kgroup.broker.authentication.jwks import Jwks
    from kgroup.broker.authentication.sasl import SaslAuthentication


@dataclass(frozen=True, slots=True)
class SecuredListener:
    """A listener with its security; `keys` check tokens."""

    settings: ListenerSettings
    mapping: PrincipalMapping
    tls: ssl.SSLContext | None = None
    sasl: SaslAuthentication | None = None
    keys: Jwks | None = None

    @property
    def name(self) -> str:
        return self.settings.name


def secured_listeners(
    listeners: Iterable[ListenerSettings], credentials: Credentials
) -> tuple[SecuredListener, ...]:
    """Return these listeners, made ready; ConfigError names the setting or file that cannot be used."""
    secured = []
    for listener in listeners:
        rules = listener.get("ssl.principal.mapping.rules") or DEFAULT_RULES
        try:
            mapping = PrincipalMapping(rules)
        except ValueError as error:
            raise ConfigError(f"{listener.where}: ssl.principal.mapping.rules: {error}") from None
        tls = None
        if listener.uses_tls:
            # with SASL, Kafka asks for certificates only if a setting of this very listener says so
            asked = listener.get("ssl.client.auth") or "none"
            if listener.uses_sasl:
                own = listener.values.get(f"listener.name.{listener.name.lower()}.ssl.client.auth")
                asked = own or "none"
            tls = server_context(listener.get, asked, listener.where)
        if not listener.uses_sasl:
            secured.append(SecuredListener(listener, mapping, tls))
            continue
        from kgroup.broker.authentication.sasl import SaslAuthentication

        validator = None
        if "OAUTHBEARER" in listener.mechanisms:
            require_extra("serve", "kgroup serve with OAUTHBEARER", "jwt", "httpx")
            validator = token_validator(listener, login_module(listener, "OAUTHBEARER"))
        made = exchanges(listener, credentials, validator)
        sasl = SaslAuthentication(
            made,
            {name: listener.number("connections.max.reauth.ms", name) for name in made},
            listener.number("sasl.server.max.receive.size"),
            listener.number("connection.failed.authentication.delay.ms") / 1000,
        )
        keys = validator.keys if isinstance(validator, SignedTokens) else None
        secured.append(SecuredListener(listener, mapping, tls, sasl, keys))
    return tuple(secured)
