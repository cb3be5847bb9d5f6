"""SaslHandshake (key 17): choose a SASL mechanism; the answer lists those enabled.

- 1: the exchange that follows travels in SaslAuthenticate requests, not as bare frames (KIP-152)

Errors: UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Int16, String


class SaslHandshakeRequest(Message, api=17, versions=range(2)):
    mechanism: String


class SaslHandshakeResponse(Message, answers=SaslHandshakeRequest):
    error_code: Int16 = 0
    mechanisms: tuple[String, ...] = ()
