"""AlterUserScramCredentials (key 51): give users SCRAM credentials, or take them away (KIP-554).

The client salts the password: a broker never learns it. Mechanisms: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.

Errors, user by user: CLUSTER_AUTHORIZATION_FAILED, UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM,
RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bytes, Int8, Int16, Int32, String


class ScramCredentialDeletion(Struct):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsRequest(Message, api=51, versions=range(1), flexible=0):
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16 = 0
    error_message: String | None = None


class AlterUserScramCredentialsResponse(Message, answers=AlterUserScramCredentialsRequest):
    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()
