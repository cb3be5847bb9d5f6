"""SaslHandshake (key 17): choose a SASL mechanism; the answer lists those enabled.

- 1: the exchange that follows travels in SaslAuthenticate requests, not as bare frames (KIP-152)

Errors: UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import message
from kgroup.protocol.types import Int16, String


@message
class SaslHandshakeRequest(Message):
    API = 17
    VERSIONS = range(2)

    mechanism: String


@message
class SaslHandshakeResponse(Message):
    API = 17
    VERSIONS = range(2)

    error_code: Int16 = 0
    mechanisms: tuple[String, ...] = ()
