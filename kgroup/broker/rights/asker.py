"""Who asks, and what is known of their rights: decisions are made once, until a rule changes."""

from __future__ import annotations

from typing import Any

from kgroup.broker.call import Call
from kgroup.security.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kgroup.security.authorizer import Authorizer
from kgroup.security.principals import Principal

ASKERS_REMEMBERED = 10_000
DECISIONS_REMEMBERED = 10_000  # of one asker


class Asker:
    """One principal at one address."""

    __slots__ = ("_authorizer", "_changes", "_host", "_known", "_principal", "is_super")

    def __init__(self, authorizer: Authorizer, principal: Principal, client_host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = client_host.removeprefix("/")
        self._known: dict[tuple[Operation, ResourceType, str], bool] = {}
        self._changes = authorizer.changes
        self.is_super = authorizer.is_super(principal)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether this asker may do this with the resource of this name."""
        if self._changes != self._authorizer.changes or len(self._known) > DECISIONS_REMEMBERED:
            self._known.clear()
            self._changes = self._authorizer.changes
        found = self._known.get((operation, kind, name))
        if found is None:
            found = self._authorizer.allows(self._principal, self._host, operation, kind, name)
            self._known[operation, kind, name] = found
        return found

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
    """The askers of a cluster, by principal and address."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._known: dict[tuple[str, str, str], Asker] = {}

    def of(self, call: Call[Any]) -> Asker:
        """Who sent this request."""
        principal = call.principal
        key = principal.kind, principal.name, call.client_host
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= ASKERS_REMEMBERED:
                self._known.clear()
            found = self._known[key] = Asker(self._authorizer, principal, call.client_host)
        return found
