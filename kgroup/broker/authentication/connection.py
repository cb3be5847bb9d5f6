"""A connection to a secured listener: no request of the cluster is served before authentication."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING

from kgroup.broker.authentication.listeners import SecuredListener
from kgroup.broker.authentication.sasl import Authentication, SaslAuthentication, Session, Then
from kgroup.broker.call import Call
from kgroup.broker.connection import Connection, Host
from kgroup.broker.newcomers import Newcomers
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kgroup.protocol.registry import ApiKey
from kgroup.security.principals import ANONYMOUS, USER, Principal

if TYPE_CHECKING:
    from kgroup.security.principal_mapping import PrincipalMapping


log = logging.getLogger(__name__)

REAUTHENTICATION_MS = 1000
"""Between two authentications of a connection (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS)."""
_HANDSHAKE = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")


class SecuredConnection(Connection):
    """A Connection with TLS below it, or SASL before its first request, or both."""

    def __init__(self, server: Host, node: int, security: SecuredListener, newcomers: Newcomers) -> None:
        super().__init__(server, node, security.name)
        self._newcomers = newcomers
        self._security = security
        self._authentication: Authentication | None = None
        self._session: Session | None = None
        self._again_ms = 0  # when it was last authenticated again
        self._refusing = False
        self._timer: asyncio.TimerHandle | None = None
        self._frames = self._limit, self._longest

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._security.sasl is not None:
            self._begin(self._security.sasl, None)
            self._newcomers.enter(self, self._host.removeprefix("/"), self.abort)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                self._newcomers.timeout_s, self._give_up, "nothing to authenticate it in time"
            )
        elif self._security.tls is not None:
            try:
                named = principal_of(transport.get_extra_info("ssl_object"), self._security.mapping)
            except ValueError as error:
                self._give_up(f"a certificate that cannot be read ({error})")
                return
            if named is None:
                self._give_up("a certificate that no rule of ssl.principal.mapping.rules gives a name")
                return
            self._principal = named

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._newcomers.leave(self)
        self._authentication = None
        super().connection_lost(exc)

    def eof_received(self) -> bool:
        """TLS cannot be closed in one direction only; without it, what came whole is still served."""
        return super().eof_received() if self._security.tls is None else False

    def _begin(self, lock: SaslAuthentication, before: Session | None) -> Authentication:
        asker = Call(SaslHandshakeRequest(mechanism=""), 0, "", self._host, self.node)
        begun = Authentication(lock, self._routes, self._dispatcher, asker, before)
        self._authentication = begun
        # Before authentication Kafka has a separate bound for frames (sasl.server.max.receive.size)
        self._limit = self._longest = min(lock.max_frame, self._frames[0])
        return begun

    def _serve(self, frame: bytes, pos: int) -> None:
        if self._refusing:
            return
        if self._authentication is not None:
            self._take(self._authentication, frame[pos:])
            return
        session = self._session
        if session is not None and session.ends_ms is not None:
            assert self._security.sasl is not None
            now_ms = self._dispatcher.clock.now_ms()
            if frame[pos : pos + 2] == _HANDSHAKE and (
                not self._again_ms or now_ms - self._again_ms >= REAUTHENTICATION_MS
            ):
                self._again_ms = now_ms
                self._take(self._begin(self._security.sasl, session), frame[pos:])
                return
            if now_ms > session.ends_ms:
                self._give_up("a request after its session expired")
                return
        super()._serve(frame, pos)

    def _take(self, authentication: Authentication, frame: bytes) -> None:
        step = authentication.take(frame)
        if step.then is Then.CLOSED:
            self._give_up(step.why)
            return
        if step.then is Then.REFUSED:
            # With a delay: a client that tries passwords should wait, too.
            assert self._security.sasl is not None
            log.info("%s failed to authenticate on %s: %s", self._host, self._security.name, step.why)
            self._stop_timer()
            self._refusing = True
            self._principal = ANONYMOUS
            self._pause()
            loop = asyncio.get_running_loop()
            delay_s = self._security.sasl.delay_s
            self._timer = loop.call_later(delay_s, self._close_with, bytes(step.answer))
            return
        self._queue_out(bytearray(step.answer))
        if step.then is Then.DONE:
            self._stop_timer()
            self._newcomers.leave(self)
            self._authentication, self._session = None, authentication.session
            self._limit, self._longest = self._frames
            assert self._session is not None
            self._principal = self._session.principal

    def _close_with(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if answer:
                self._transport.write(answer)
            self.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The keywords of RFC 2253; any other is an OID and its value in hexadecimal."""
_STRINGS = frozenset({12, 19, 20, 22, 27, 30})
"""The tags of UTF8, Printable, T61, IA5, General and BMP strings."""
_ESCAPED = frozenset(',=+<>#;"\\')


def principal_of(tls: ssl.SSLObject | ssl.SSLSocket, mapping: PrincipalMapping) -> Principal | None:
    """Return the principal behind a handshake: ANONYMOUS without a certificate, None if no rule names it."""
    certificate = tls.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    name = mapping.name_of(distinguished_name(certificate))
    return None if name is None else Principal(USER, name)


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, most specific part first; ValueError for an invalid one."""
    from cryptography.x509 import load_der_x509_certificate

    subject = load_der_x509_certificate(certificate).subject
    parts = []
    # the encoding of a value decides how Java writes it; cryptography does not expose it
    [(_, names, _)] = _elements(subject.public_bytes())
    for rdn, (_, encoded, _) in zip(subject.rdns, _elements(names), strict=True):
        values = [_elements(content)[1] for _, content, _ in _elements(encoded)]
        oids = (attribute.oid.dotted_string for attribute in rdn)
        parts.append("+".join(_written(oid, *value) for oid, value in zip(oids, values, strict=True)))
    return ",".join(reversed(parts))


def _elements(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Return tag, content and whole of each element of a valid DER text."""
    elements, pos = [], 0
    while pos < len(data):
        start, size = pos + 2, data[pos + 1]
        if size & 0x80:
            start, size = start + (size & 0x7F), int.from_bytes(data[start : start + (size & 0x7F)], "big")
        elements.append((data[pos], data[start : start + size], data[pos : start + size]))
        pos = start + size
    return elements


def _written(oid: str, tag: int, content: bytes, whole: bytes) -> str:
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or oid}=#{whole.hex()}"
    # Java reads the bytes of any kind of string as UTF-8
    text = content.decode("utf-8", "replace")
    shown = "".join(f"\\{c}" if c in _ESCAPED else "\\00" if c == "\0" else c for c in text)
    inner = shown.strip(" ")
    if not inner:
        return f"{keyword}=" + "\\ " * len(shown)
    before = len(shown) - len(shown.lstrip(" "))
    behind = len(shown) - len(shown.rstrip(" "))
    return f"{keyword}=" + "\\ " * before + inner + "\\ " * behind
