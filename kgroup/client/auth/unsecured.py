"""A token that nobody signs, as Kafka's unsecured login makes it: for brokers in tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from kgroup.errors import ConfigError

_OPTION = "unsecuredLogin"


def unsecured_token(options: Mapping[str, str], now: float) -> str:
    """A JWS of algorithm `none` with the claims that the options name; ConfigError for a bad one."""
    where = "sasl.jaas.config"
    try:
        lives_s = int(options.get(f"{_OPTION}LifetimeSeconds", "3600"))
        claims: dict[str, object] = {"exp": now + lives_s, "iat": now}
        for name, value in options.items():
            for kind, read in (("String", str), ("Number", float), ("List", _items)):
                claim = name.removeprefix(f"{_OPTION}{kind}Claim_")
                if claim not in (name, ""):
                    if claim in ("iat", "exp"):
                        raise ConfigError(f"{where} sets the claim {claim}, which is made here")
                    claims[claim] = read(value)
    except ValueError:
        raise ConfigError(
            f"{where}: a lifetime or a number claim of the unsecured token is no number"
        ) from None
    principal = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
    if not claims.get(principal):
        raise ConfigError(
            f"{where}: the unsecured token names nobody", f'add {_OPTION}StringClaim_{principal}="NAME"'
        )
    return ".".join((*(_encoded(part) for part in ({"alg": "none"}, claims)), ""))


def _items(value: str) -> list[str]:
    """A list, whose first character is what its items are separated by."""
    return value[1:].split(value[0]) if len(value) > 1 else []


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=").decode()
