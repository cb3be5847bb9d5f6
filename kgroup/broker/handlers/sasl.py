"""SaslHandshake and SaslAuthenticate where nothing is to be authenticated, answered as by KafkaApis.

On listeners with SASL they are taken before they get here (kgroup.broker.locks).
"""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handshake(broker: Dispatcher, call: Call[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """ILLEGAL_SASL_STATE: not on a listener with SASL, or not in time."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(broker: Dispatcher, call: Call[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """ILLEGAL_SASL_STATE, likewise."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def refuse_handshake(request: Message, code: ErrorCode, message: str | None) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=code)


def refuse_authenticate(request: Message, code: ErrorCode, message: str | None) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message)


APIS = (
    Api(SaslHandshakeRequest, handshake, refuse_handshake),
    Api(SaslAuthenticateRequest, authenticate, refuse_authenticate),
)
