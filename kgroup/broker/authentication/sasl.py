"""From a connection's first byte to a principal: the requests allowed, their order, and the answers.

The states and refusals are those of Kafka 4.3.1's SaslServerAuthenticator: ApiVersions once, SaslHandshake,
then tokens, in SaslAuthenticate requests (KIP-152) or, after SaslHandshake v0, as bare frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kgroup.broker.authentication.mechanisms import Denied, Exchange
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.api_versions import of_any_cluster, unsupported
from kgroup.broker.routes import NotServed, Route, Routes, encoded
from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import refusal
from kgroup.security.principals import USER, Principal


class Then(Enum):
    """What happens to the connection after a step."""

    MORE = auto()
    DONE = auto()
    REFUSED = auto()
    """The answer is delayed by connection.failed.authentication.delay.ms; then it is closed."""
    CLOSED = auto()
    """At once, without an answer."""


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    BARE_TOKENS = auto()
    OTHER_MECHANISM = auto()


@dataclass(frozen=True, slots=True)
class SaslStep:
    """The answer to a frame, with its length in front, and what happens to the connection."""

    then: Then
    answer: bytes | bytearray = b""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection's principal and mechanism, and when it must authenticate again (ms); None: never."""

    principal: Principal
    mechanism: str
    ends_ms: int | None


@dataclass(frozen=True, slots=True)
class SaslAuthentication:
    """The demands of a listener: its mechanisms, and the longest session of each (0: without end)."""

    exchanges: Mapping[str, Callable[[], Exchange]]
    max_session_ms: Mapping[str, int]
    max_frame: int
    delay_s: float


class Authentication:
    """One authentication of a connection; after `before` neither user nor mechanism may change."""

    def __init__(
        self,
        lock: SaslAuthentication,
        routes: Routes,
        dispatcher: Dispatcher,
        call: Call[Message],
        before: Session | None,
    ) -> None:
        self._lock = lock
        self._routes = routes
        self._dispatcher = dispatcher
        self._asker = call
        self._before = before
        self._state = _State.HANDSHAKE if before else _State.VERSIONS_OR_HANDSHAKE
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self.session: Session | None = None
        """The session, once a step says DONE."""

    def take(self, frame: bytes) -> SaslStep:
        """Return the result of a frame, without its length; never raises for its content."""
        if self._state is _State.BARE_TOKENS:
            try:
                said, _ = self._step(frame)
            except Denied as denied:
                return SaslStep(Then.CLOSED if denied.silent else Then.REFUSED, why=str(denied))
            return SaslStep(Then.DONE if self.session else Then.MORE, len(said).to_bytes(4, "big") + said)
        if self._state is _State.OTHER_MECHANISM:
            return SaslStep(
                Then.REFUSED, why=f"it asked for {self._mechanism} in a session of another mechanism"
            )
        try:
            route, correlation, _, body = self._routes.read(frame, 0)
        except NotServed as error:
            if error.key != ApiKey.API_VERSIONS or self._state is not _State.VERSIONS_OR_HANDSHAKE:
                name = registry.name_of(error.key)
                return SaslStep(Then.CLOSED, why=f"{name} v{error.version} before SASL was done")
            oldest = self._routes.find(ApiKey.API_VERSIONS, 0)
            assert oldest is not None
            return SaslStep(Then.MORE, encoded(oldest, error.correlation, unsupported(self._dispatcher)))
        except DecodeError as error:
            return SaslStep(Then.CLOSED, why=f"bytes that are no request ({error})")
        if self._state is _State.TOKENS:
            return self._token(route, correlation, body)
        if body.API == ApiKey.API_VERSIONS:
            return self._versions(route, correlation, body)
        if body.API == ApiKey.SASL_HANDSHAKE:
            return self._handshake(route, correlation, body)
        return SaslStep(Then.CLOSED, why=f"{registry.name_of(body.API)} before it was authenticated")

    def _versions(self, route: Route, correlation: int, body: Any) -> SaslStep:
        if self._state is not _State.VERSIONS_OR_HANDSHAKE:
            return SaslStep(Then.CLOSED, why="ApiVersions twice")
        asker = self._asker
        # Kafka's authenticator does not compare the requested cluster: it is checked after the login.
        call = Call(of_any_cluster(body), route.version, asker.client_id, asker.client_host, asker.node)
        answer = self._dispatcher.handle(call)
        if not isinstance(answer, Message):
            return SaslStep(Then.CLOSED, why="ApiVersions, which is not answered now")
        if not getattr(answer, "error_code", ErrorCode.NONE):
            self._state = _State.HANDSHAKE
        return SaslStep(Then.MORE, encoded(route, correlation, answer))

    def _handshake(self, route: Route, correlation: int, body: Any) -> SaslStep:
        lock, self._mechanism = self._lock, body.mechanism
        known = self._mechanism in lock.exchanges
        code = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = SaslHandshakeResponse(error_code=code, mechanisms=tuple(lock.exchanges))
        out = encoded(route, correlation, answer)
        if not known and self._before is not None:
            return SaslStep(Then.CLOSED, why=f"the mechanism {self._mechanism[:40]!r} in a session")
        if not known:
            return SaslStep(
                Then.REFUSED, out, f"the mechanism {self._mechanism[:40]!r}, which is not enabled"
            )
        if self._before is not None and self._before.mechanism != self._mechanism:
            self._state = _State.OTHER_MECHANISM
        else:
            self._exchange = lock.exchanges[self._mechanism]()
            self._state = _State.TOKENS if route.version else _State.BARE_TOKENS
        return SaslStep(Then.MORE, out)

    def _token(self, route: Route, correlation: int, body: Any) -> SaslStep:
        if body.API != ApiKey.SASL_AUTHENTICATE:
            text = (
                f"Unexpected Kafka request of type {registry.name_of(body.API)} during SASL authentication."
            )
            refused = refusal(body, ErrorCode.ILLEGAL_SASL_STATE, text)
            return SaslStep(Then.REFUSED, encoded(route, correlation, refused), text)
        try:
            said, lifetime_ms = self._step(body.auth_bytes)
        except Denied as denied:
            if denied.silent:
                return SaslStep(Then.CLOSED, why=str(denied))
            again = "re-authentication" if self._before else "authentication"
            text = denied.message or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{self._mechanism}"
            )
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            failed = SaslAuthenticateResponse(error_code=code, error_message=text)
            return SaslStep(Then.REFUSED, encoded(route, correlation, failed), str(denied))
        answer = SaslAuthenticateResponse(error_message="", auth_bytes=said, session_lifetime_ms=lifetime_ms)
        then = Then.DONE if self.session else Then.MORE
        return SaslStep(then, encoded(route, correlation, answer))

    def _step(self, said: bytes) -> tuple[bytes, int]:
        """Return the mechanism's answer, and for how many ms its completed session is valid."""
        exchange = self._exchange
        assert exchange is not None
        answer = exchange.step(said)
        if not exchange.done:
            return answer, 0
        principal = Principal(USER, exchange.user)
        if self._before is not None and self._before.principal != principal:
            old = self._before.principal
            raise Denied(
                f"Cannot change principals during re-authentication from {old.kind}.{old.name}: "
                f"{principal.kind}.{principal.name}"
            )
        now_ms = self._dispatcher.clock.now_ms()
        limits = []
        if exchange.expires_ms is not None:
            limits.append(max(exchange.expires_ms - now_ms, 0))
        if longest := self._lock.max_session_ms[self._mechanism]:
            limits.append(longest)
        lifetime_ms = min(limits, default=0)
        self.session = Session(principal, self._mechanism, now_ms + lifetime_ms if limits else None)
        return answer, lifetime_ms
