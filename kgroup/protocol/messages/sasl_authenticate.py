"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152).

- 1: session lifetime, after which the client must authenticate again (KIP-368)
- 2: flexible

Errors: SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Bytes, Int16, Int64, Since, String


class SaslAuthenticateRequest(Message, api=36, versions=range(3), flexible=2):
    auth_bytes: Bytes


class SaslAuthenticateResponse(Message, answers=SaslAuthenticateRequest):
    error_code: Int16 = 0
    error_message: String | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0
