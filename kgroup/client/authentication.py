"""SASL on a connection: handshake, then the mechanism's tokens in requests (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kgroup.client.auth.bounded import until
from kgroup.client.auth.exchanges import redacted, secrets_in
from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from kgroup.client.auth.login import Login
    from kgroup.client.link import Link

R = TypeVar("R", bound=Message)


def authenticate(link: Link, login: Login, deadline: float) -> float:
    """Prove who we are; the seconds until the broker wants it proved again, 0 for never.

    BrokerRefused when it does not take the credentials, Unreachable when it does not answer. What has to be
    fetched first (a token, a ticket) is fetched first, so that no broker waits for it.
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
