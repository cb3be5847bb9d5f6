"""The access rules of a cluster: list, add and remove them (KIP-11, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kgroup.admin.discovery import ClusterView
from kgroup.admin.refusals import check
from kgroup.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kgroup.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kgroup.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kgroup.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from kgroup.security.rights import ALTER, DESCRIBE, on_cluster


@dataclass(frozen=True, slots=True, order=True)
class ListedAcl:
    """A rule as a broker reports it; a value that kgroup has no name for is its number."""

    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    @property
    def words(self) -> dict[str, str]:
        """The rule in Kafka's words, by field."""
        return {
            "resource_type": _spelling(ResourceType, self.resource_type),
            "name": self.name,
            "pattern": _spelling(PatternType, self.pattern),
            "principal": self.principal,
            "host": self.host,
            "operation": _spelling(Operation, self.operation),
            "permission": _spelling(Permission, self.permission),
        }

    @classmethod
    def of(cls, acl: Acl) -> ListedAcl:
        """Return the same rule."""
        return cls(
            acl.resource_type, acl.name, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission
        )


class Acls:
    """The access rules of a cluster."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster

    def list(self, filters: Iterable[AclFilter]) -> tuple[ListedAcl, ...]:
        """Return the rules that match any of the filters, in order.

        Raise BrokerRefused with SECURITY_DISABLED for brokers without an authorizer.
        """
        acls: set[ListedAcl] = set()
        for acl_filter in filters:
            request = DescribeAclsRequest(
                resource_type_filter=acl_filter.resource_type,
                resource_name_filter=acl_filter.name,
                pattern_type_filter=acl_filter.pattern,
                principal_filter=acl_filter.principal,
                host_filter=acl_filter.host,
                operation=acl_filter.operation,
                permission_type=acl_filter.permission,
            )

            answer = self._cluster.ask_again(None, request, DescribeAclsResponse)
            check(answer.error_code, "describing access rules", answer.error_message, (on_cluster(DESCRIBE),))
            acls.update(
                ListedAcl(
                    of.resource_type,
                    of.resource_name,
                    of.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for of in answer.resources
                for acl in of.acls
            )
        return tuple(sorted(acls))

    def add(self, acls: Sequence[Acl]) -> None:
        """Add the rules that do not exist yet; raise BrokerRefused for the first one refused."""
        request = CreateAclsRequest(
            creations=tuple(
                AclCreation(
                    resource_type=acl.resource_type,
                    resource_name=acl.name,
                    resource_pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            )
        )

        # adding a rule twice leaves one rule
        answer = self._cluster.ask_controller(request, CreateAclsResponse)
        for acl, result in zip(acls, answer.results, strict=True):
            what = f"the rule for {acl.principal} on {acl.resource_type.name} {acl.name}"
            check(result.error_code, f"adding {what}", result.error_message, (on_cluster(ALTER),))

    def remove(self, acls: Sequence[ListedAcl]) -> tuple[ListedAcl, ...]:
        """Remove rules; return those that existed. Raise BrokerRefused."""
        request = DeleteAclsRequest(
            filters=tuple(
                DeleteAclsFilter(
                    resource_type_filter=acl.resource_type,
                    resource_name_filter=acl.name,
                    pattern_type_filter=acl.pattern,
                    principal_filter=acl.principal,
                    host_filter=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            )
        )

        gone: list[ListedAcl] = []
        # a repeated removal reports "not found", so an unknown outcome cannot be resolved by retrying
        results = self._cluster.ask_controller(request, DeleteAclsResponse, idempotent=False).filter_results
        for acl, result in zip(acls, results, strict=True):
            check(result.error_code, "removing access rules", result.error_message, (on_cluster(ALTER),))
            for matching in result.matching_acls:
                check(matching.error_code, "removing an access rule", matching.error_message)
                gone.append(acl)
        return tuple(gone)


def _spelling(kind: type[IntEnum], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return f"UNKNOWN({number})"
