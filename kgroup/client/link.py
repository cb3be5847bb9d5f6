"""A socket to one broker: connected, encrypted, greeted and authenticated within a deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kgroup.client.auth.bounded import until, within
from kgroup.client.auth.exchanges import redacted, secrets_in
from kgroup.client.connection import Connection
from kgroup.client.retry import OutcomeUnknown
from kgroup.client.settings import ConnectionSettings, address_text
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kgroup.protocol.registry import name_of

if TYPE_CHECKING:
    import ssl

    from kgroup.client.auth.login import Login


CHUNK = 1 << 16
RENEWED_AT = 0.85
"""The part of a session's life after which it is renewed; Kafka's clients take 0.85 to 0.95."""


class Link:
    """An open connection to one broker, used for one request at a time.

    After any exception except BrokerRefused it must be closed: answers could no longer be matched.
    """

    def __init__(
        self,
        address: tuple[str, int],
        settings: ConnectionSettings,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
        login: Login | None = None,
    ) -> None:
        """Open it before `deadline` (on `clock`); Unreachable or BrokerRefused name the failed step.

        `login` is our identity for a broker that asks; needed if the settings hold credentials.
        """
        self.address = address
        self.peer = address_text(*address)
        self.clock = clock
        self._settings = settings
        self._login = login
        self._prove_at = float("inf")
        self._served_one = False
        self._socket: socket.socket = self._connect(deadline)
        self.connection = Connection(settings.client_id, self.peer)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.security.tls is not None:
                self._encrypt(deadline)
            self._greet(deadline)
            if login is not None:
                self._authenticate(login, deadline)
        except BaseException:
            self.close()
            raise

    def call(self, request: Message, version: int, deadline: float) -> Message:
        """Return the answer to a request.

        Unreachable when the request cannot have reached the broker whole; OutcomeUnknown when it may have.
        A session that is about to end is renewed first, on the same connection (KIP-368).
        """
        if self._login is not None and self.clock() >= self._prove_at:
            self._authenticate(self._login, deadline)
        return self.ask(request, version, deadline)

    def ask(self, request: Message, version: int, deadline: float) -> Message:
        """As `call`, whatever the session's age: for authentication itself."""
        answer = self._exchange(self.connection.send(request, version), name_of(request.API), deadline)
        self._served_one = True
        return answer

    def stale(self) -> bool:
        """Return whether the broker has closed the idle connection, or sent something unasked."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            import ssl

            # A readable TLS socket without data has only received a session ticket.
            return not isinstance(error, ssl.SSLWantReadError)
        return True

    def close(self) -> None:
        """Close the socket; answers still under way are lost."""
        self._socket.close()

    def _connect(self, deadline: float) -> socket.socket:
        host, port = self.address
        try:
            addresses = within(
                self._left(deadline),
                lambda: socket.getaddrinfo(_as_asked(host), port, type=socket.SOCK_STREAM),
                f"{self.peer}: the resolver of names",
                "check the address, and the DNS",
            )
        except (OSError, UnicodeError) as error:
            # UnicodeError: a name no resolver can be asked for, with an empty label or an endless one.
            said = error.strerror if isinstance(error, OSError) else "it is not a host name"
            raise Unreachable(
                f"{self.peer}: the name {host} does not resolve: {said}",
                "check the address, or the advertised.listeners of the broker",
            ) from None
        failures: dict[str, None] = {}
        for number, (family, kind, protocol, _, where) in enumerate(addresses):
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(self._left(deadline) / (len(addresses) - number))
                made.connect(where)
            except OSError as error:
                made.close()
                failures[_words(error)] = None
            else:
                return made
        raise Unreachable(f"{self.peer}: {'; '.join(failures)}", "is a broker running there?")

    def _encrypt(self, deadline: float) -> None:
        import ssl

        from kgroup.client.tls.context import client_context

        assert self._settings.security.tls is not None
        context = client_context(self._settings.security.tls)
        self._socket.settimeout(self._left(deadline))
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self.address[0])
        except ssl.SSLError as error:
            raise self._tls_failed(error) from None
        except OSError as error:
            raise Unreachable(
                f"{self.peer}: the TLS handshake was cut off: {_words(error)}",
                "is this a TLS listener? check the port and security.protocol",
            ) from None

    def _tls_failed(self, error: ssl.SSLError) -> Unreachable:
        from kgroup.client.tls.context import hint_for
        from kgroup.keystores.loading import reason

        return Unreachable(f"{self.peer}: TLS failed: {reason(error)}", hint_for(error))

    def _greet(self, deadline: float) -> None:
        # Clusters that authenticate as kgroup does serve ApiVersions: Kafka 1.0 and later.
        if not self._settings.asks_versions and self._login is None:
            self.connection.assume_oldest()
            return
        bytes_to_send: bytes | None = self.connection.hello()
        try:
            while bytes_to_send is not None:
                answer = self._exchange(bytes_to_send, "ApiVersions", deadline)
                bytes_to_send = self.connection.greeted(answer)
        except OutcomeUnknown as error:
            hint = error.hint or "does the listener speak another security.protocol?"
            raise Unreachable(error.message, hint) from None
        except DecodeError as error:
            raise Unreachable(error.message, error.hint or "is this a Kafka broker?") from None

    def _authenticate(self, login: Login, deadline: float) -> None:
        begun = self.clock()
        lifetime_s = authenticate(self, login, deadline)
        self._prove_at = begun + lifetime_s * RENEWED_AT if lifetime_s else float("inf")

    def _exchange(self, data: bytes, name: str, deadline: float) -> Message:
        try:
            self._socket.settimeout(self._left(deadline))
            self._socket.sendall(data)
        except OSError as error:
            raise self._unsent(name, error) from None
        while True:
            try:
                self._socket.settimeout(self._left(deadline))
                received = self._socket.recv(CHUNK)
            except TimeoutError:
                raise OutcomeUnknown(
                    f"{self.peer} did not answer {name} in time", "a longer --timeout may help"
                ) from None
            except OSError as error:
                import ssl

                if isinstance(error, ssl.SSLError):
                    # With TLS 1.3 a broker that wants a client certificate says so only here.
                    raise self._tls_failed(error) from None
                raise OutcomeUnknown(
                    f"{self.peer} broke off before it answered {name}: {_words(error)}"
                ) from None
            if not received:
                raise OutcomeUnknown(
                    f"{self.peer} closed the connection instead of answering {name}",
                    None if self._served_one else "does the listener want TLS or SASL (security.protocol)?",
                    futile=not self._served_one,
                )
            for answer in self.connection.receive(received):
                return answer

    def _unsent(self, name: str, error: OSError) -> Unreachable:
        """Return why nothing could be sent; over TLS the broker may have said it before it hung up."""
        if self._settings.security.tls is not None:
            import ssl

            try:
                self._socket.settimeout(0)
                self._socket.recv(1)
            except (ssl.SSLEOFError, ssl.SSLWantReadError):
                pass
            except ssl.SSLError as said:
                return self._tls_failed(said)
            except OSError:
                pass
        hint = None
        tls = self._settings.security.tls
        if tls is not None and tls.identity is None:
            hint = "if it wants a client certificate: set ssl.keystore.location, or ssl.certificate.location"
        return Unreachable(f"{self.peer}: {name} could not be sent: {_words(error)}", hint)

    def _left(self, deadline: float) -> float:
        return max(deadline - self.clock(), 0.001)


def _as_asked(host: str) -> str | bytes:
    """Return the bytes that Python would make of a host in ASCII, without importing what it makes them by."""
    plain = host.isascii() and all(0 < len(label) < 64 for label in host.removesuffix(".").split("."))
    return host.encode() if plain else host


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror or str(error) or type(error).__name__).lower()


R = TypeVar("R", bound=Message)


def authenticate(link: Link, login: Login, deadline: float) -> float:
    """Authenticate; return the seconds until the broker wants it repeated, 0 for never.

    BrokerRefused when it rejects the credentials, Unreachable when it does not answer. Tokens and tickets
    are fetched first, so that no broker waits for them.
    """
    tokens = login.exchange(link.address[0], until(deadline, link.clock))
    _shake_hands(link, login.mechanism, deadline)
    token, secrets = next(tokens), list[str]()
    while True:
        secrets += secrets_in(token)
        answer = _ask(link, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, deadline)
        if answer.error_code:
            said = redacted(answer.error_message, secrets) if answer.error_message else None
            raise BrokerRefused(
                answer.error_code,
                f"{link.peer} did not authenticate {login.who} with {login.mechanism}: "
                f"{said or ErrorCode.name_of(answer.error_code)}",
                detail=said,
                hint=login.hint(),
            )
        try:
            token = tokens.send(answer.auth_bytes)
        except StopIteration:
            return answer.session_lifetime_ms / 1000


def _shake_hands(link: Link, mechanism: str, deadline: float) -> None:
    chosen = _ask(link, SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, deadline, lowest=1)
    if chosen.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise BrokerRefused(
            chosen.error_code,
            f"{link.peer} is a listener without SASL, and security.protocol asks for SASL",
            hint="name the port of a SASL listener, or set security.protocol to PLAINTEXT, or SSL with TLS",
        )
    if chosen.error_code:
        offered = ", ".join(chosen.mechanisms)
        raise BrokerRefused(
            chosen.error_code,
            f"{link.peer} does not accept {mechanism}: {ErrorCode.name_of(chosen.error_code)}",
            hint=f"set sasl.mechanism to one it accepts: {offered}" if offered else None,
        )


def _ask(link: Link, request: Message, response: type[R], deadline: float, lowest: int = 0) -> R:
    version = link.connection.pick_version(request, lowest)
    try:
        answer = link.ask(request, version, deadline)
    except OutcomeUnknown as error:
        raise Unreachable(f"{error.message} (authenticating)", error.hint) from None
    assert isinstance(answer, response)
    return answer
