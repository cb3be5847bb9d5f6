"""Sets of access rules for a case, made by rule from what its request needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kgroup.security.acls import (
    ANYBODY,
    CLUSTER_NAME,
    IMPLIED_BY,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

ASKER, SOMEBODY = "User:bob", "User:carol"
ELSEWHERE = "10.9.8.7"
CLUSTER = ResourceType.CLUSTER


@dataclass(frozen=True, slots=True)
class Right:
    """One thing a request needs: an operation on a resource."""

    operation: Operation
    kind: ResourceType = CLUSTER
    name: str = CLUSTER_NAME

    def acl(self, permission: Permission = Permission.ALLOW) -> Acl:
        """The rule that gives, or takes, exactly this."""
        return Acl(self.kind, self.name, PatternType.LITERAL, ASKER, WILDCARD, self.operation, permission)


@dataclass(frozen=True, slots=True)
class Grant:
    """A named set of rules."""

    name: str
    acls: tuple[Acl, ...]


def grants_for(needs: Sequence[Right], turn: int) -> Iterator[Grant]:
    """The rule sets for a case: those every case gets, and of the others every third, from `turn` on."""
    exact = tuple(need.acl() for need in needs)
    yield Grant("none", ())
    yield Grant("exact", exact)
    for missing in range(len(exact)) if len(exact) > 1 else ():
        rest = (*exact[:missing], *exact[missing + 1 :])
        yield Grant(f"without {missing + 1}, {_told(needs[missing])}", rest)
    yield Grant("deny over allow", (*exact, needs[0].acl(Permission.DENY)))
    others = list(_others(needs, exact))
    yield from (grant for at, grant in enumerate(others) if (at + turn) % 3 == 0)


def _others(needs: Sequence[Right], exact: Sequence[Acl]) -> Iterator[Grant]:
    deny = needs[0].acl(Permission.DENY)
    yield Grant("prefixed", tuple(map(_prefixed, exact)))
    yield Grant("wildcard", tuple(map(_everywhere, exact)))
    yield Grant("all operations", tuple(replace(acl, operation=Operation.ALL) for acl in exact))
    yield Grant("anybody", tuple(replace(acl, principal=ANYBODY) for acl in exact))
    yield Grant("another host", tuple(replace(acl, host=ELSEWHERE) for acl in exact))
    yield Grant("this host", tuple(replace(acl, host="127.0.0.1") for acl in exact))
    yield Grant("another principal", tuple(replace(acl, principal=SOMEBODY) for acl in exact))
    yield Grant("implied", tuple(_implying(exact)))
    yield Grant("only described", tuple(replace(acl, operation=Operation.DESCRIBE) for acl in exact))
    yield Grant("denied by prefix", (*exact, _prefixed(deny)))
    yield Grant("denied everywhere", (*exact, _everywhere(deny)))
    yield Grant("denied for all", (*exact, replace(deny, operation=Operation.ALL, principal=ANYBODY)))
    yield Grant("denied elsewhere", (*exact, replace(deny, host=ELSEWHERE)))
    yield Grant("denied to another", (*exact, replace(deny, principal=SOMEBODY)))
    yield Grant(
        "a longer prefix",
        tuple(replace(_prefixed(acl), name=acl.name + "-x") for acl in exact if acl.resource_type != CLUSTER),
    )
    yield Grant(
        "denied what implies",
        (*exact, *(replace(a, permission=Permission.DENY) for a in _implying(exact) if a not in exact)),
    )


def _prefixed(acl: Acl) -> Acl:
    if acl.resource_type is CLUSTER:
        return acl
    return replace(acl, pattern=PatternType.PREFIXED, name=acl.name[:-1])


def _everywhere(acl: Acl) -> Acl:
    return acl if acl.resource_type is CLUSTER else replace(acl, name=WILDCARD)


def _implying(acls: Iterable[Acl]) -> Iterator[Acl]:
    """Rules whose operation is another that implies what is needed, where there is one."""
    for acl in acls:
        implying = sorted(IMPLIED_BY.get(acl.operation, frozenset()) - {acl.operation})
        yield replace(acl, operation=implying[len(acl.name) % len(implying)]) if implying else acl


def _told(right: Right) -> str:
    return f"{right.operation.name} on {right.kind.name}"
