"""DescribeUserScramCredentials (key 50): which users have SCRAM credentials, never the credentials (KIP-554).

No users means all of them. Mechanisms: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.

Errors: CLUSTER_AUTHORIZATION_FAILED, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, String


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsRequest(Message, api=50, versions=range(1), flexible=0):
    users: tuple[UserName, ...] | None = None


class CredentialInfo(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16 = 0
    error_message: String | None = None
    credential_infos: tuple[CredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(Message, answers=DescribeUserScramCredentialsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
