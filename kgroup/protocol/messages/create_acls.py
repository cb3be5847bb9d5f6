"""CreateAcls (key 30): new access rules.

- 1: first version served; pattern types
- 2: flexible
- 3: user resources

Errors: SECURITY_DISABLED, INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, String


class AclCreation(Struct):
    """One rule; `resource_pattern_type` 3 for a literal name, 4 for a prefix."""

    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Message, api=30, versions=range(1, 4), flexible=2):
    creations: tuple[AclCreation, ...] = ()


class AclCreationResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None


class CreateAclsResponse(Message, answers=CreateAclsRequest):
    """One result for each rule, in their order."""

    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...] = ()
