"""The decisions of Kafka 4.3.1's StandardAuthorizer.

A rule that forbids comes before any that allows. If no rule is about a resource, the default decides; if some
are, but none allows what is asked, it is forbidden. Super users may do everything (StandardAuthorizerData;
Authorizer.authorizeByResourceType).
"""

from collections.abc import Iterable, Iterator

from kgroup.security.acls import ANYBODY, WILDCARD, Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import Principal


class _Rules:
    """The rules about resources of one type, by the names they begin with or have."""

    __slots__ = ("_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, set[Acl]] = {}
        self._prefixed: dict[str, set[Acl]] = {}
        self._lengths: dict[int, int] = {}  # of prefixes → how many there are

    def add(self, acl: Acl) -> None:
        by_name = self._of(acl)
        if acl.pattern is PatternType.PREFIXED and acl.name not in by_name:
            self._lengths[len(acl.name)] = self._lengths.get(len(acl.name), 0) + 1
        by_name.setdefault(acl.name, set()).add(acl)

    def remove(self, acl: Acl) -> None:
        by_name = self._of(acl)
        by_name[acl.name].remove(acl)
        if by_name[acl.name]:
            return
        del by_name[acl.name]
        if acl.pattern is PatternType.PREFIXED:
            self._lengths[len(acl.name)] -= 1
            if not self._lengths[len(acl.name)]:
                del self._lengths[len(acl.name)]

    def about(self, name: str) -> Iterator[Acl]:
        """Yield the rules about the resource of this name, with one look-up for each length of prefixes."""
        yield from self._literal.get(name, ())
        if name != WILDCARD:
            yield from self._literal.get(WILDCARD, ())
        for length in self._lengths:
            if length <= len(name):
                yield from self._prefixed.get(name[:length], ())

    def all(self) -> Iterator[Acl]:
        for by_name in (self._literal, self._prefixed):
            for acls in by_name.values():
                yield from acls

    def _of(self, acl: Acl) -> dict[str, set[Acl]]:
        return self._prefixed if acl.pattern is PatternType.PREFIXED else self._literal


class Authorizer:
    """The rules of one cluster, and what follows from them.

    `changes` grows with every rule added or removed: cached decisions are then outdated.
    """

    def __init__(
        self, acls: Iterable[Acl] = (), super_users: Iterable[str] = (), *, open_by_default: bool = False
    ) -> None:
        self.super_users = frozenset(super_users)
        self.open_by_default = open_by_default
        self.changes = 0
        self._acls: set[Acl] = set()
        self._rules = {kind: _Rules() for kind in ResourceType}
        for acl in acls:
            self.add(acl)

    @property
    def acls(self) -> frozenset[Acl]:
        """All present rules."""
        return frozenset(self._acls)

    def add(self, acl: Acl) -> None:
        """Add a rule; one that exists already is left."""
        if acl not in self._acls:
            self._acls.add(acl)
            self._rules[acl.resource_type].add(acl)
            self.changes += 1

    def remove(self, acl: Acl) -> None:
        """Remove a rule; KeyError for a missing one."""
        self._acls.remove(acl)
        self._rules[acl.resource_type].remove(acl)
        self.changes += 1

    def is_super(self, principal: Principal) -> bool:
        """Return whether no rule binds this principal."""
        return str(principal) in self.super_users

    def allows(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """Return whether a principal at an address may do this with the resource of this name."""
        who = str(principal)
        if who in self.super_users:
            return True
        governed = allowed = False
        for acl in self._rules[kind].about(name):
            governed = True
            if _is_for(acl, who, host) and acl.speaks_of(operation):
                if acl.permission is Permission.DENY:
                    return False
                allowed = True
        return allowed or (not governed and self.open_by_default)

    def allows_somewhere(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType
    ) -> bool:
        """Return whether there may be a resource of this type with which the principal may do this (KIP-679).

        As Kafka, it uses the resource "hardcode" for one that no rule is about.
        """
        if self.allows(principal, host, operation, kind, "hardcode"):
            return True
        who = str(principal)
        said = [
            acl
            for acl in self._rules[kind].all()
            if acl.operation in (operation, Operation.ALL) and _is_for(acl, who, host)
        ]
        denied = {(acl.pattern, acl.name) for acl in said if acl.permission is Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(acl.permission is Permission.ALLOW and not _dominated(acl, denied) for acl in said)


def _is_for(acl: Acl, who: str, host: str) -> bool:
    return acl.principal in (who, ANYBODY) and acl.host in (host, WILDCARD)


def _dominated(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Return whether all that a rule allows is forbidden; what is allowed on everything never is."""
    literal = acl.pattern is PatternType.LITERAL
    if literal and acl.name == WILDCARD:
        return False
    prefixes = (acl.name[: end + 1] for end in range(len(acl.name)))
    return (literal and (PatternType.LITERAL, acl.name) in denied) or any(
        (PatternType.PREFIXED, prefix) in denied for prefix in prefixes
    )
