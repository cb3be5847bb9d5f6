"""DeleteAcls (key 31): delete the access rules that filters match.

- 1: first version served; pattern types
- 2: flexible
- 3: user resources

Errors: SECURITY_DISABLED, INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, String


class DeleteAclsFilter(Struct):
    """A null filter, or 1 for a type, matches everything."""

    resource_type_filter: Int8
    resource_name_filter: String | None = None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = None
    host_filter: String | None = None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Message, api=31, versions=range(1, 4), flexible=2):
    filters: tuple[DeleteAclsFilter, ...] = ()


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


class DeleteAclsFilterResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


class DeleteAclsResponse(Message, answers=DeleteAclsRequest):
    """One result for each filter, in their order."""

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
