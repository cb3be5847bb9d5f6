"""Access rules as options name them, with the names of kafka-acls.sh."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kgroup.errors import ConfigError
from kgroup.security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kgroup.security.principals import Principal

Kind = TypeVar("Kind", Operation, PatternType)


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that options name; `cluster` is the one without a name."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    cluster: bool = False

    def named(self) -> Iterator[tuple[ResourceType, str]]:
        """Yield type and name of each."""
        yield from ((ResourceType.TOPIC, name) for name in self.topics)
        yield from ((ResourceType.GROUP, name) for name in self.groups)
        yield from ((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids)
        if self.cluster:
            yield ResourceType.CLUSTER, CLUSTER_NAME


@dataclass(frozen=True, slots=True)
class Terms:
    """Principals, hosts and operations; in a filter an omitted one means all."""

    principals: Sequence[str] = ()
    hosts: Sequence[str] = ()
    operations: Sequence[str] = ()
    pattern: str | None = None
    deny: bool = False
    allow: bool = False


def new_acls(resources: Resources, terms: Terms) -> list[Acl]:
    """Return the rules of the options: every principal with every operation on every resource.

    Raise ConfigError where a principal, an operation or a resource is missing or invalid.
    """
    named = list(resources.named())
    if not named:
        raise ConfigError("no resource is named", "--topic, --group, --transactional-id or --cluster")
    if not terms.principals:
        raise ConfigError("no principal is named", "--principal User:alice; 'User:*' for all")
    if not terms.operations:
        raise ConfigError("no operation is named", "--operation Read; All for all there are")
    pattern = _pattern(terms.pattern or "literal")
    if pattern < PatternType.LITERAL:
        raise ConfigError(
            f"a rule cannot be for the pattern {terms.pattern}", "--pattern literal or prefixed"
        )
    if pattern is PatternType.PREFIXED and resources.cluster:
        raise ConfigError("the cluster has no prefix", "leave --pattern prefixed out, or name it by itself")
    return [
        Acl(
            kind,
            name,
            pattern,
            _principal(principal),
            host,
            _fitting(kind, _operation(operation)),
            Permission.DENY if terms.deny else Permission.ALLOW,
        )
        for kind, name in named
        for principal in terms.principals
        for host in terms.hosts or (WILDCARD,)
        for operation in terms.operations
    ]


def filters(resources: Resources, terms: Terms) -> list[AclFilter]:
    """Return the filters of the options; without options one for every rule. Raise ConfigError."""
    pattern = _pattern(terms.pattern or "any")
    permission = Permission.DENY if terms.deny else Permission.ALLOW if terms.allow else Permission.ANY
    named: Iterable[tuple[ResourceType, str | None]] = list(resources.named()) or [(ResourceType.ANY, None)]
    return [
        AclFilter(
            kind,
            name,
            pattern,
            None if principal is None else _principal(principal),
            host,
            Operation.ANY if operation is None else _operation(operation),
            permission,
        )
        for kind, name in named
        for principal in terms.principals or (None,)
        for host in terms.hosts or (None,)
        for operation in terms.operations or (None,)
    ]


def _principal(text: str) -> str:
    try:
        return str(Principal.parse(text))
    except ValueError as error:
        raise ConfigError(f"--principal: {error}") from None


def _operation(text: str) -> Operation:
    operation = _known(Operation, text)
    if operation is None or operation <= Operation.ANY:
        known = ", ".join(value.name.title().replace("_", "") for value in Operation if value > Operation.ANY)
        raise ConfigError(f"--operation {text}: there is no such operation", f"there are {known}")
    return operation


def _pattern(text: str) -> PatternType:
    pattern = _known(PatternType, text)
    if not pattern:
        raise ConfigError(
            f"--pattern {text}: there is no such pattern", "literal or prefixed; in filters also any, match"
        )
    return pattern


def _fitting(kind: ResourceType, operation: Operation) -> Operation:
    """Return the operation; brokers accept any for any resource, but a useless one is a mistake."""
    if operation is not Operation.ALL and operation not in OPERATIONS[kind]:
        known = ", ".join(value.name.title().replace("_", "") for value in OPERATIONS[kind])
        raise ConfigError(f"{operation.name} is no operation of a {kind.name}", f"there are {known}")
    return operation


def _known(kind: type[Kind], text: str) -> Kind | None:
    """Return the value of a name in any of Kafka's spellings (DescribeConfigs, describe-configs …)."""
    name = text.replace("_", "").replace("-", "").upper()
    return next((value for value in kind if value.name.replace("_", "") == name), None)
