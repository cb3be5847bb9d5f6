"""Access rules as values: which principal, from which host, may or may not do what with which resources.

Numbers, names and what a filter matches are Kafka's (KIP-11, KIP-290; ResourcePatternFilter,
AccessControlEntryFilter, AclEntry).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from kgroup.errors import ErrorCode, Refused
from kgroup.security.principals import USER

WILDCARD = "*"
ANYBODY = f"{USER}:{WILDCARD}"
"""The principal of a rule for all principals, of whatever kind."""
CLUSTER_NAME = "kafka-cluster"
"""The one resource of the type CLUSTER."""


class ResourceType(IntEnum):
    """What a rule is about; ANY only in filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule names its resources; ANY and MATCH only in filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done with a resource; ANY only in filters, ALL only in rules."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether a rule allows or forbids; ANY only in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_O = Operation
IMPLIED_BY = {
    _O.DESCRIBE: frozenset({_O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER}),
    _O.DESCRIBE_CONFIGS: frozenset({_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}),
}
"""An operation → those that allow it, too, if a rule allows them; what a rule forbids implies nothing."""
OPERATIONS = {
    ResourceType.TOPIC: (
        _O.READ,
        _O.WRITE,
        _O.CREATE,
        _O.DELETE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        _O.CREATE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE, _O.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceType.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}
"""The operations on a resource of each type (AclEntry.supportedOperations)."""


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One rule; `principal` as `str(Principal)` gives it, or ANYBODY; `host` an address or WILDCARD."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def concerns(self, name: str) -> bool:
        """Return whether the rule is about a resource of its type, by name."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def speaks_of(self, operation: Operation) -> bool:
        """Return whether the rule allows, or forbids, the operation on its resources."""
        if self.operation in (operation, Operation.ALL):
            return True
        return self.permission is Permission.ALLOW and self.operation in IMPLIED_BY.get(operation, ())


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which rules are meant: None, or a type's ANY, means all.

    MATCH as the pattern means the rules about a resource of that name: literal, prefixed and wildcard.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Return whether this rule is among those meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.pattern in (PatternType.ANY, PatternType.MATCH, acl.pattern)
            and (
                self.name is None
                or (acl.concerns(self.name) if self.pattern is PatternType.MATCH else acl.name == self.name)
            )
            and (self.principal is None or self.principal == acl.principal)
            and (self.host is None or self.host == acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )


Kind = TypeVar("Kind", ResourceType, PatternType, Operation, Permission)


def known(kind: type[Kind], number: int) -> Kind:
    """Return the value of this number; INVALID_REQUEST for one unknown to Kafka 4.3.1."""
    try:
        value = kind(number)
    except ValueError:
        value = kind(0)
    if not value:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown {kind.__name__} {number}")
    return value


def check_new(acl: Acl) -> None:
    """Raise INVALID_REQUEST for what is no rule but a filter (AclControlManager.validateNewAcl)."""
    cluster = acl.resource_type is ResourceType.CLUSTER
    wrong = {
        f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}": cluster
        and acl.name != CLUSTER_NAME,
        "Invalid empty resource name": not acl.name,
        "Invalid resourceType ANY": acl.resource_type is ResourceType.ANY,
        f"Invalid patternType {acl.pattern.name}": acl.pattern < PatternType.LITERAL,
        "Invalid operation ANY": acl.operation is Operation.ANY,
        "Invalid permissionType ANY": acl.permission is Permission.ANY,
        f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal "
        "type from the principal name)": ":" not in acl.principal,
    }
    for message, applies in wrong.items():
        if applies:
            raise Refused(ErrorCode.INVALID_REQUEST, message)
