"""A bearer token and how long it lives."""

import base64
import json
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token; `begins` and `ends` are seconds since the epoch, None if unknown."""

    text: str = field(repr=False)
    begins: float | None = None
    ends: float | None = None


def read_token(text: str, lives_s: float | None = None, now: float | None = None) -> Token:
    """Return a token with the times in its claims (RFC 7519); else those that its issuer sent with it.

    Nothing is verified: that is the broker's work. A token need not be a JWT.
    """
    claims = _claims(text)
    begins, ends = _seconds(claims.get("iat")), _seconds(claims.get("exp"))
    if ends is None and lives_s is not None and now is not None:
        begins, ends = now, now + lives_s
    return Token(text, begins, ends)


def _claims(text: str) -> dict[str, object]:
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, UnicodeDecodeError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
