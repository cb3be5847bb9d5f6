"""Who asks, and what is known of their rights: decisions are made once, until a rule changes."""

from __future__ import annotations

from kgroup.broker.call import AnyCall
from kgroup.security.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kgroup.security.authorizer import Authorizer
from kgroup.security.principals import Principal

ASKERS_REMEMBERED = 10_000
DECISIONS_REMEMBERED = 10_000  # of one asker about one right

# Nearly every request finds its decisions made. What that costs must not be felt, so that both look-ups are a
# dictionary's own, and only what is missing runs a line of ours.


def right_of(operation: Operation, kind: ResourceType) -> int:
    """A number for an operation on resources of a type, under which `Asker.rights` has the decisions."""
    return int(operation) << 8 | int(kind)


class Decisions(dict[str, bool]):
    """By name: whether an asker may do one thing with resources of one type."""

    __slots__ = ("_authorizer", "_host", "_kind", "_operation", "_principal")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str, right: int) -> None:
        super().__init__()
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._operation, self._kind = Operation(right >> 8), ResourceType(right & 0xFF)

    def __missing__(self, name: str) -> bool:
        if len(self) >= DECISIONS_REMEMBERED:
            self.clear()
        found = self[name] = self._authorizer.allows(
            self._principal, self._host, self._operation, self._kind, name
        )
        return found


class Rights(dict[int, Decisions]):
    """The decisions about one asker, by right."""

    __slots__ = ("_authorizer", "_host", "_principal")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        super().__init__()
        self._authorizer = authorizer
        self._principal = principal
        self._host = host

    def __missing__(self, right: int) -> Decisions:
        found = self[right] = Decisions(self._authorizer, self._principal, self._host, right)
        return found


class Asker:
    """One principal at one address; `rights[right_of(…)][name]` is whether it may."""

    __slots__ = ("_authorizer", "_host", "_principal", "is_super", "rights")

    def __init__(self, authorizer: Authorizer, principal: Principal, client_host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = client_host.removeprefix("/")
        self.is_super = authorizer.is_super(principal)
        self.rights = Rights(authorizer, principal, self._host)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether this asker may do this with the resource of this name."""
        return self.rights[right_of(operation, kind)][name]

    def may_somewhere(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether there may be a resource of this type that this asker may do this with."""
        return self._authorizer.allows_somewhere(self._principal, self._host, operation, kind)

    def on_cluster(self, operation: Operation) -> bool:
        """Whether this asker may do this with the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def describes(self, topic: str) -> bool:
        """Whether this asker may be told of a topic."""
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def operations(self, kind: ResourceType, name: str) -> int:
        """What this asker may do with a resource: a bit for each operation (KIP-430)."""
        return sum(1 << each for each in OPERATIONS[kind] if self.may(each, kind, name))


class Askers:
    """The askers of a cluster, by principal and address; a rule that comes or goes has all forgotten."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._changes = authorizer.changes
        self._known: dict[tuple[str, str, str], Asker] = {}

    def of(self, call: AnyCall) -> Asker:
        """Who sent this request."""
        if self._changes != self._authorizer.changes:
            self._changes = self._authorizer.changes
            self._known.clear()
        principal = call.principal
        key = principal.kind, principal.name, call.client_host
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= ASKERS_REMEMBERED:
                self._known.clear()
            found = self._known[key] = Asker(self._authorizer, principal, call.client_host)
        return found
