"""SaslHandshake and SaslAuthenticate if there is nothing to authenticate, answered as by KafkaApis.

On listeners with SASL `kgroup.broker.authentication` handles them earlier.
"""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handshake(broker: Dispatcher, call: Call[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """Answer ILLEGAL_SASL_STATE: not on a listener with SASL, or too late."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(broker: Dispatcher, call: Call[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE, likewise."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


APIS = (
    Api(SaslHandshakeRequest, handshake),
    Api(SaslAuthenticateRequest, authenticate),
)
