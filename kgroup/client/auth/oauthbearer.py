"""OAUTHBEARER (RFC 7628) as an exchange of tokens, as Kafka's client has it."""

import json
import re
from collections.abc import Mapping

from kgroup.client.auth.exchanges import Exchange, not_authenticated

_SEPARATOR = "\x01"
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")


def exchange(token: str, extensions: Mapping[str, str]) -> Exchange:
    """Send the token; a broker that refuses it sends a reason, gets an acknowledgement, and then refuses."""
    if not _TOKEN.fullmatch(token):
        raise not_authenticated(
            "the bearer token contains invalid characters", "it must be a token alone, as a JWT is"
        )
    pairs = {"auth": f"Bearer {token}", **extensions}
    message = "".join(f"{name}={value}{_SEPARATOR}" for name, value in pairs.items())
    answer = yield f"n,,{_SEPARATOR}{message}{_SEPARATOR}".encode()
    if answer:
        yield _SEPARATOR.encode()
        try:
            said = json.loads(answer)
            why, scope = str(said["status"]), said.get("scope")
            why += f" (it wants the scope {scope})" if scope else ""
        except (ValueError, TypeError, KeyError, AttributeError):
            why = "it does not say why"
        raise not_authenticated(
            f"the broker refuses the bearer token: {why}",
            "does the broker trust the token's issuer, audience and scope?",
        )
