"""A socket to one broker: connected, encrypted, greeted and authenticated within a deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kgroup.client.connection import Connection
from kgroup.client.retry import OutcomeUnknown
from kgroup.client.settings import ConnectionSettings, address_text
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.registry import name_of

if TYPE_CHECKING:
    import ssl

CHUNK = 1 << 16
R = TypeVar("R", bound=Message)


class Link:
    """An open connection to one broker, used for one request at a time.

    After any exception but BrokerRefused it must be closed: answers could no longer be told apart.
    """

    def __init__(
        self,
        address: tuple[str, int],
        settings: ConnectionSettings,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open it before `deadline` (on `clock`); Unreachable or BrokerRefused say which step failed."""
        self.address = address
        self.peer = address_text(*address)
        self._clock = clock
        self._settings = settings
        self._served_one = False
        self._socket: socket.socket = self._connect(deadline)
        self.connection = Connection(settings.client_id, self.peer)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.uses_tls:
                self._encrypt(deadline)
            self._greet(deadline)
            if settings.uses_sasl:
                self._authenticate(deadline)
        except BaseException:
            self.close()
            raise

    def call(self, request: Message, version: int, deadline: float) -> Message:
        """The answer to a request.

        Unreachable when the request cannot have reached the broker whole; OutcomeUnknown when it may have.
        """
        answer = self._exchange(self.connection.send(request, version), name_of(request.API), deadline)
        self._served_one = True
        return answer

    def stale(self) -> bool:
        """Whether the broker has closed the idle connection, or said something unasked."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            return not _wants_more(error)
        return True

    def close(self) -> None:
        """Close the socket; answers still under way are lost."""
        self._socket.close()

    def _connect(self, deadline: float) -> socket.socket:
        host, port = self.address
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            # UnicodeError: a name no resolver can be asked for, with an empty label or an endless one.
            said = error.strerror if isinstance(error, OSError) else "it is not a host name"
            raise Unreachable(
                f"{self.peer}: the name {host} does not resolve: {said}",
                "check the address, or the advertised.listeners of the broker",
            ) from None
        failures: dict[str, None] = {}
        for number, (family, kind, protocol, _, where) in enumerate(found):
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(self._left(deadline) / (len(found) - number))
                made.connect(where)
            except OSError as error:
                made.close()
                failures[_words(error)] = None
            else:
                return made
        raise Unreachable(f"{self.peer}: {'; '.join(failures)}", "is a broker running there?")

    def _encrypt(self, deadline: float) -> None:
        import ssl

        from kgroup.client import tls

        self._socket.settimeout(self._left(deadline))
        context = tls.client_context(self._settings)
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
        from kgroup.client import tls

        return Unreachable(f"{self.peer}: TLS failed: {tls.reason(error)}", tls.hint_for(error))

    def _greet(self, deadline: float) -> None:
        # Who authenticates as kgroup does serves ApiVersions: Kafka 1.0 and later.
        if not self._settings.asks_versions and not self._settings.uses_sasl:
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

    def _authenticate(self, deadline: float) -> None:
        from kgroup.client import sasl
        from kgroup.protocol.messages.sasl_authenticate import (
            SaslAuthenticateRequest,
            SaslAuthenticateResponse,
        )
        from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

        mechanism = self._settings.sasl_mechanism or ""
        chosen = self._ask(
            SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, deadline, lowest=1
        )
        if chosen.error_code:
            offered = ", ".join(chosen.mechanisms) or "none"
            raise BrokerRefused(
                chosen.error_code,
                f"{self.peer} does not take {mechanism}: {ErrorCode.name_of(chosen.error_code)}",
                hint=f"set sasl.mechanism to one it takes: {offered}",
            )
        tokens = sasl.exchange(self._settings)
        token = next(tokens)
        while True:
            answer = self._ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, deadline)
            if answer.error_code:
                raise self._not_authenticated(mechanism, answer.error_code, answer.error_message)
            try:
                token = tokens.send(answer.auth_bytes)
            except StopIteration:
                return

    def _ask(self, request: Message, response: type[R], deadline: float, lowest: int = 0) -> R:
        version = self.connection.pick_version(request, lowest)
        try:
            answer = self.call(request, version, deadline)
        except OutcomeUnknown as error:
            raise Unreachable(f"{error.message} (authenticating)", error.hint) from None
        assert isinstance(answer, response)
        return answer

    def _not_authenticated(self, mechanism: str, code: int, detail: str | None) -> BrokerRefused:
        who = self._settings.sasl_username
        said = detail or ErrorCode.name_of(code)
        return BrokerRefused(
            code,
            f"{self.peer} did not authenticate {who} with {mechanism}: {said}",
            detail=detail,
            hint="check user name, password and mechanism",
        )

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
                raise self._lost(name, error) from None
            if not received:
                raise OutcomeUnknown(
                    f"{self.peer} closed the connection instead of answering {name}",
                    None if self._served_one else "does the listener want TLS or SASL (security.protocol)?",
                    futile=not self._served_one,
                )
            for answer in self.connection.receive(received):
                return answer

    def _unsent(self, name: str, error: OSError) -> Unreachable:
        """Why nothing could be sent; over TLS the broker may have said it before it hung up."""
        if self._settings.uses_tls:
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
        if self._settings.uses_tls and not self._settings.ssl_certificate_location:
            hint = "if the broker wants a client certificate: ssl.certificate.location and ssl.key.location"
        return Unreachable(f"{self.peer}: {name} could not be sent: {_words(error)}", hint)

    def _lost(self, name: str, error: OSError) -> Unreachable:
        import ssl

        if isinstance(error, ssl.SSLError):
            # With TLS 1.3 a broker that wants a client certificate says so only here.
            return self._tls_failed(error)
        return OutcomeUnknown(f"{self.peer} broke off before it answered {name}: {_words(error)}")

    def _left(self, deadline: float) -> float:
        return max(deadline - self._clock(), 0.001)


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror or str(error) or type(error).__name__).lower()


def _wants_more(error: OSError) -> bool:
    """Whether a TLS socket only took in a session ticket."""
    import ssl

    return isinstance(error, ssl.SSLWantReadError)
