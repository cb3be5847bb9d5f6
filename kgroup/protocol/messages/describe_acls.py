"""DescribeAcls (key 29): who may do what with which resource.

- 1: first version served; pattern types
- 2: flexible
- 3: user resources

Errors: SECURITY_DISABLED, INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, String


class DescribeAclsRequest(Message, api=29, versions=range(1, 4), flexible=2):
    """A null filter, or 1 for a type, matches everything."""

    resource_type_filter: Int8
    resource_name_filter: String | None = None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = None
    host_filter: String | None = None
    operation: Int8
    permission_type: Int8


class AclDescription(Struct):
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...] = ()


class DescribeAclsResponse(Message, answers=DescribeAclsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    resources: tuple[DescribeAclsResource, ...] = ()
