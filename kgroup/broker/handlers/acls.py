"""CreateAcls, DescribeAcls and DeleteAcls: the access rules of the cluster (AclApis, AclControlManager)."""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kgroup.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kgroup.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kgroup.runtime.acl_store import AclStore
from kgroup.security.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_new,
    known,
)


def create_acls(broker: Dispatcher, call: Call[CreateAclsRequest]) -> CreateAclsResponse:
    """Create each rule by itself; one that exists already is fine."""
    store = _store(broker)
    # Kafka refuses a request with a rule for ANY type as a whole.
    if any(
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == Operation.ANY
        or creation.permission_type == Permission.ANY
        for creation in call.body.creations
    ):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A rule is for one type, operation and permission.")
    acls: list[Acl] = []
    results: list[AclCreationResult] = []
    for creation in call.body.creations:
        try:
            acl = Acl(
                known(ResourceType, creation.resource_type),
                creation.resource_name,
                known(PatternType, creation.resource_pattern_type),
                creation.principal,
                creation.host,
                known(Operation, creation.operation),
                known(Permission, creation.permission_type),
            )
            check_new(acl)
            acls.append(acl)
            results.append(AclCreationResult())
        except Refused as refused:
            results.append(AclCreationResult(error_code=refused.code, error_message=refused.message))
    store.add(acls)
    return CreateAclsResponse(results=tuple(results))


def describe_acls(broker: Dispatcher, call: Call[DescribeAclsRequest]) -> DescribeAclsResponse:
    """Return the rules that a filter matches, by what they are about."""
    by_resource: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    acl_filter = _filter(call.body)
    for acl in sorted(filter(acl_filter.matches, _store(broker).authorizer.acls)):
        by_resource.setdefault((acl.resource_type, acl.name, acl.pattern), []).append(acl)
    return DescribeAclsResponse(
        resources=tuple(
            DescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=tuple(
                    AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ),
            )
            for (kind, name, pattern), acls in by_resource.items()
        )
    )


def delete_acls(broker: Dispatcher, call: Call[DeleteAclsRequest]) -> DeleteAclsResponse:
    """Delete the rules that each filter matches; one that several match stands under each of them."""
    store = _store(broker)
    gone: set[Acl] = set()
    results: list[DeleteAclsFilterResult] = []
    for requested in call.body.filters:
        try:
            matching = sorted(filter(_filter(requested).matches, store.authorizer.acls))
        except Refused as refused:
            results.append(DeleteAclsFilterResult(error_code=refused.code, error_message=refused.message))
            continue
        gone.update(matching)
        deleted = tuple(
            DeleteAclsMatchingAcl(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in matching
        )
        results.append(DeleteAclsFilterResult(matching_acls=deleted))
    store.remove(gone)
    return DeleteAclsResponse(filter_results=tuple(results))


def _store(broker: Dispatcher) -> AclStore:
    store = broker.cluster.acls
    if store is None:
        raise Refused(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return store


def _filter(requested: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        known(ResourceType, requested.resource_type_filter),
        requested.resource_name_filter,
        known(PatternType, requested.pattern_type_filter),
        requested.principal_filter,
        requested.host_filter,
        known(Operation, requested.operation),
        known(Permission, requested.permission_type),
    )


APIS = (
    Api(CreateAclsRequest, create_acls),
    Api(DescribeAclsRequest, describe_acls),
    Api(DeleteAclsRequest, delete_acls),
)
