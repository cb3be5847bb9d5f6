"""Validation of bearer tokens: signed ones by a JWKS, unsecured ones only if explicitly enabled.

The checks are those of Kafka's BrokerJwtValidator and OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

from kgroup.broker.authentication.jwks import open_jwks
from kgroup.broker.authentication.settings import OF_LISTENERS, ListenerSettings
from kgroup.errors import ConfigError
from kgroup.numbers import whole_number

if TYPE_CHECKING:
    from jwt.types import Options

    from kgroup.broker.authentication.jwks import Jwks
    from kgroup.security.jaas import LoginModule

UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"
SECURED = "OAuthBearerValidatorCallbackHandler"
SKEW = "sasl.oauthbearer.clock.skew.seconds"


@dataclass(frozen=True, slots=True)
class Token:
    """The owner of a token, and its expiry (epoch ms)."""

    principal: str
    expires_ms: int


class BadToken(Exception):
    """An invalid token; the text is for the log."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope

    def as_json(self) -> str:
        """Return the answer of RFC 7628 to clients, as Kafka spells it."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":"{self.scope}"}}'


class TokenValidator(Protocol):
    """Validates tokens."""

    def validate(self, token: str) -> Token:
        """Return a token's owner; raise BadToken for an invalid one."""
        ...


@dataclass(frozen=True, slots=True)
class SignedTokens:
    """Tokens that a key of the JWKS signed, for this audience, by this issuer, and not expired."""

    keys: Jwks
    audiences: Collection[str] = ()
    issuer: str | None = None
    subject_claim: str = "sub"
    skew_s: int = OF_LISTENERS[SKEW].default

    def validate(self, token: str) -> Token:
        import jwt

        options: Options = {
            "require": ["exp", "iat"],
            "verify_iat": False,
            "verify_sub": False,
            "verify_jti": False,
        }
        failed = "no key of the JWKS fits"
        try:
            header = jwt.get_unverified_header(token)
            algorithm = str(header.get("alg"))
            for key in self.keys.fitting(header.get("kid"), algorithm):
                try:
                    claims = jwt.decode(
                        token,
                        key,
                        algorithms=[algorithm],
                        audience=list(self.audiences) or None,
                        issuer=self.issuer,
                        leeway=self.skew_s,
                        options=options,
                    )
                except jwt.InvalidSignatureError:
                    failed = "no key of the JWKS signed it"
                    continue
                # As jose4j does for Kafka: no token may expire before it was issued, or before it is valid.
                expires = claims.get("exp")
                for name in ("iat", "nbf"):
                    begins = claims.get(name)
                    if begins is None:
                        continue
                    if not (isinstance(begins, int | float) and isinstance(expires, int | float)):
                        raise BadToken(f"the claim {name} is not a time")
                    if expires < begins:
                        raise BadToken(f"it expires before its {name}")
                return _token(claims, self.subject_claim)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise BadToken(f"{type(error).__name__}: {error}") from None
        raise BadToken(failed)


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """Unsigned tokens: any client is the principal that it claims, as long as the times fit."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    def validate(self, token: str) -> Token:
        import jwt

        parts = token.split(".")
        try:
            claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise BadToken(f"{type(error).__name__}: {error}") from None
        if header.get("alg") != "none" or len(parts) != 3 or parts[2]:
            raise BadToken("an unsecured token has the algorithm none and no signature")
        validated = _token(claims, self.subject_claim)
        now_ms = time.time() * 1000
        if now_ms - self.skew_ms >= validated.expires_ms:
            raise BadToken("it is expired")
        issued = claims.get("iat")
        if issued is not None and (not _is_number(issued) or issued * 1000 > now_ms + self.skew_ms):
            raise BadToken("it is issued in the future")
        scope = claims.get(self.scope_claim) or ()
        has = set(scope.split() if isinstance(scope, str) else map(str, scope))
        if missing := [required for required in self.required_scope if required not in has]:
            raise BadToken(f"it lacks the scope {missing[0]}", scope=" ".join(self.required_scope))
        return validated


def _token(claims: Mapping[str, object], subject_claim: str) -> Token:
    subject, expires = claims.get(subject_claim), claims.get("exp")
    if not isinstance(subject, str) or not subject.strip():
        raise BadToken(f"the claim {subject_claim} names no principal")
    if not _is_number(expires):
        raise BadToken("it never expires")
    return Token(subject, int(expires * 1000))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 43


def token_validator(listener: ListenerSettings, module: LoginModule | None) -> TokenValidator:
    """Return the validator of a listener's tokens; ConfigError without settings or keys."""
    name = (listener.get("sasl.server.callback.handler.class", "OAUTHBEARER") or "").rpartition(".")[2]
    url = listener.get("sasl.oauthbearer.jwks.endpoint.url", "OAUTHBEARER")
    if name not in ("", SECURED, UNSECURED):
        raise ConfigError(f"{listener.where}, OAUTHBEARER: {name} is not known", f"{SECURED} is")
    if name == UNSECURED:
        if listener.protocol != "SASL_PLAINTEXT" or url is not None:
            raise ConfigError(
                f"{listener.where}: {UNSECURED} lets anybody in under any name, and asks for no keys",
                "it is for tests: on SASL_PLAINTEXT and loopback, without sasl.oauthbearer.jwks.endpoint.url",
            )
        options: Mapping[str, str] = module.options if module else {}
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
        return UnsecuredTokens(
            options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub",
            options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope",
            tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
            whole_number(skew, "unsecuredValidatorAllowableClockSkewMs"),
        )
    if url is None:
        raise ConfigError(
            f"{listener.where}: OAUTHBEARER has no keys to check tokens with",
            "set sasl.oauthbearer.jwks.endpoint.url to file:///… or https://…",
        )

    refresh_ms = listener.number("sasl.oauthbearer.jwks.endpoint.refresh.ms", "OAUTHBEARER")
    audiences = (listener.get("sasl.oauthbearer.expected.audience", "OAUTHBEARER") or "").split(",")
    return SignedTokens(
        open_jwks(url, refresh_ms),
        tuple(filter(None, map(str.strip, audiences))),
        listener.get("sasl.oauthbearer.expected.issuer", "OAUTHBEARER"),
        listener.get("sasl.oauthbearer.sub.claim.name", "OAUTHBEARER") or "sub",
        listener.number(SKEW, "OAUTHBEARER"),
    )
