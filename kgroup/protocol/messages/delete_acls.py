"""DeleteAcls (key 31): delete the access rules that filters match.

- 1: first version served; pattern types
- 2: flexible
- 3: user resources

Errors: SECURITY_DISABLED, INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int8, Int16, Int32, String


@message
class DeleteAclsFilter(Struct):
    """A null filter, or 1 for a type, matches everything."""

    resource_type_filter: Int8
    resource_name_filter: String | None = None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = None
    host_filter: String | None = None
    operation: Int8
    permission_type: Int8


@message
class DeleteAclsRequest(Message):
    API = 31
    VERSIONS = range(1, 4)
    FLEXIBLE = 2

    filters: tuple[DeleteAclsFilter, ...] = ()


@message
class DeleteAclsMatchingAcl(Struct):
    """A rule that was deleted, or why it could not be."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class DeleteAclsFilterResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


@message
class DeleteAclsResponse(Message):
    """One result for each filter, in their order."""

    API = 31
    VERSIONS = range(1, 4)
    FLEXIBLE = 2

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
