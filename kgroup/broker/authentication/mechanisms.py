"""SASL mechanisms on the broker's side: they check a password, a proof or a token, and return its owner.

Messages to clients are those of Kafka's PlainSaslServer, ScramSaslServer and OAuthBearerSaslServer.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from kgroup.broker.authentication.settings import JAAS, ListenerSettings
from kgroup.broker.authentication.tokens import BadToken, TokenValidator
from kgroup.errors import ConfigError
from kgroup.runtime.credentials import Credentials
from kgroup.security.jaas import LoginModule, parse_jaas
from kgroup.security.scram import OTHER_ID, ScramMechanism, ScramRefused, ScramServer

USER = "user_"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class Denied(Exception):
    """The client is refused with `message`; None is the usual one, and no answer at all if `silent`."""

    def __init__(self, message: str | None = None, why: str = "", *, silent: bool = False) -> None:
        super().__init__(message or why)
        self.message = message
        self.silent = silent


class Exchange(Protocol):
    """One authentication: `step` takes a client's message and returns the answer, until `done`.

    Then `user` is its principal, and `expires_ms` the expiry of its credentials (epoch), if there is one.
    """

    user: str
    done: bool
    expires_ms: int | None

    def step(self, said: bytes) -> bytes:
        """Take the client's token and return the answer; raise Denied."""
        ...


class Plain:
    """User name and password in the clear (RFC 4616)."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user, self.done = "", False
        self.expires_ms: int | None = None

    def step(self, said: bytes) -> bytes:
        parts = said.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise Denied(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
        authzid, user, password = parts
        if not user:
            raise Denied("Authentication failed: username not specified")
        if not password:
            raise Denied("Authentication failed: password not specified")
        known = self._passwords.get(user)
        if not hmac.compare_digest(password.encode(), (known or "").encode()) or known is None:
            raise Denied("Authentication failed: Invalid username or password")
        if authzid and authzid != user:
            raise Denied(OTHER_ID)
        self.user, self.done = user, True
        return b""


class Scram:
    """A proof of the password, checked with the cluster's stored credentials."""

    def __init__(self, mechanism: ScramMechanism, credentials: Credentials) -> None:
        self._server = ScramServer(
            mechanism, lambda user: credentials.find(user, mechanism), secrets.token_urlsafe(24)
        )
        self.user, self.done = "", False
        self.expires_ms: int | None = None

    def step(self, said: bytes) -> bytes:
        try:
            answer = self._server.step(said)
        except ScramRefused as refused:
            raise Denied(refused.message, str(refused), silent=refused.silent) from None
        self.user, self.done = self._server.user, self._server.done
        return answer


class OAuthBearer:
    """A token signed by an issuer that the broker trusts (RFC 7628)."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._failed = ""
        self.user, self.done = "", False
        self.expires_ms: int | None = None

    def step(self, said: bytes) -> bytes:
        if self._failed and said == b"\x01":
            raise Denied(self._failed)
        # Authorization id and token of a client's first message.
        match = _INITIAL.fullmatch(said.decode("utf-8", "replace"))
        if match is None:
            raise Denied(why="an invalid first message")
        pairs = dict(pair.partition("=")[::2] for pair in match["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None or auth["scheme"].lower() != "bearer":
            # for another scheme Kafka means to refuse, but fails at its own pattern and closes the connection
            raise Denied(why="a first message without a bearer token", silent=auth is not None)
        authzid, token = match["authzid"] or "", auth["token"]
        try:
            validated = self._validator.validate(token)
        except BadToken as error:
            self._failed = error.as_json()
            return self._failed.encode()
        if authzid and authzid != validated.principal:
            raise Denied(
                f"Authentication failed: Client requested an authorization id ({authzid}) that is different "
                f"from the token's principal name ({validated.principal})"
            )
        self.user, self.expires_ms, self.done = validated.principal, validated.expires_ms, True
        return b""


def exchanges(
    listener: ListenerSettings, credentials: Credentials, validator: TokenValidator | None
) -> dict[str, Callable[[], Exchange]]:
    """Return the start of an authentication, by mechanism, in the order they are enabled; ConfigError."""
    made: dict[str, Callable[[], Exchange]] = {}
    for name in listener.mechanisms:
        handler = listener.get("sasl.server.callback.handler.class", name)
        if handler is not None and name != "OAUTHBEARER":
            raise ConfigError(
                f"{listener.where}, {name}: sasl.server.callback.handler.class names a Java class",
                "leave it out: PLAIN takes the users of its JAAS line, SCRAM those of the cluster",
            )
        if name == "PLAIN":
            made[name] = partial(Plain, _passwords(listener))
        elif name == "OAUTHBEARER":
            assert validator is not None
            made[name] = partial(OAuthBearer, validator)
        else:
            made[name] = partial(Scram, ScramMechanism.named(name), credentials)
    return made


def login_module(listener: ListenerSettings, mechanism: str) -> LoginModule | None:
    """Return the login module set for a mechanism; ConfigError for an invalid line."""
    text = listener.get(JAAS, mechanism)
    if text is None:
        return None
    try:
        return parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{listener.where}, {mechanism.lower()}.{JAAS}: {error}") from None


def _passwords(listener: ListenerSettings) -> dict[str, str]:
    module = login_module(listener, "PLAIN")
    name = f"listener.name.{listener.name.lower()}.plain.{JAAS}"
    hint = f'{name}=org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";'
    if module is None:
        raise ConfigError(f"{listener.where}: PLAIN knows no users", hint)
    if module.name != "PlainLoginModule":
        raise ConfigError(f"{name} names {module.name}, not PlainLoginModule", hint)
    return {key.removeprefix(USER): value for key, value in module.options.items() if key.startswith(USER)}
