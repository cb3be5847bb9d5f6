"""JWTs that prove who a client is to a token endpoint, made and signed as Kafka 4.3 does (RFC 7523)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from kgroup.client.auth.credentials import SignedAssertion
from kgroup.errors import ConfigError, require_extra

_KEY = "sasl.oauthbearer.assertion.private.key.file"


def assertion_of(assertion: str | SignedAssertion, now: float) -> str:
    """The assertion: read from its file, or made at `now`; ConfigError names the file that cannot be used."""
    if isinstance(assertion, str):
        return _text(assertion, "sasl.oauthbearer.assertion.file").strip()
    header: dict[str, object] = {}
    payload: dict[str, object] = dict(assertion.claims)
    if assertion.template_location:
        header, more = _template(assertion.template_location)
        payload |= more
    payload |= {
        "iat": int(now),
        "exp": int(now) + assertion.lives_s,
        "nbf": int(now) - assertion.not_before_s,
    }
    if assertion.with_id:
        payload["jti"] = str(uuid.uuid4())
    return _signed(assertion, header, payload)


def _template(location: str) -> tuple[dict[str, object], dict[str, object]]:
    named = "sasl.oauthbearer.assertion.template.file"
    try:
        found = json.loads(_text(location, named))
        header, payload = found.get("header") or {}, found.get("payload") or {}
        return dict(header), dict(payload)
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"{named}: {location} is not JSON with a header and a payload") from None


def _signed(assertion: SignedAssertion, header: dict[str, object], payload: dict[str, object]) -> str:
    require_extra("oauth", "signing an assertion", "jwt")
    import jwt
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _text(assertion.key_location, _KEY)
    password = assertion.passphrase.encode() if assertion.passphrase and "ENCRYPTED" in text else None
    try:
        key = load_pem_private_key(text.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{_KEY}: no private key can be read from {assertion.key_location}",
            "it must be PEM; is it encrypted? then check sasl.oauthbearer.assertion.private.key.passphrase",
        ) from None
    try:
        return jwt.encode(payload, key, assertion.algorithm, header)  # type: ignore[arg-type]
    except (jwt.PyJWTError, TypeError, ValueError):
        raise ConfigError(
            f"{_KEY}: {assertion.key_location} is no key for {assertion.algorithm}",
            "RS256 wants RSA, ES256 a P-256 key",
        ) from None


def _text(location: str, named: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{named}: {location} cannot be read: {said}") from None
