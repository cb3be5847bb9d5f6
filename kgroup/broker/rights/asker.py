"""Callers and their known rights: decisions are made once, until a rule changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from sys import getsizeof

from kgroup.broker.call import AnyCall
from kgroup.security.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kgroup.security.authorizer import Authorizer
from kgroup.security.needs import right_of
from kgroup.security.principals import Principal

BYTES_REMEMBERED = 32 << 20  # for the decisions about all callers together
ENTRY_BYTES = 120  # about what a dictionary takes for an entry, without its key
ASKER_BYTES = 1000  # about what a caller takes without decisions, and so does the first about a right

# Nearly every request finds its decisions made. That must cost nothing, so both look-ups are a dictionary's
# own, and only what is missing runs a line of ours.


@dataclass(slots=True)
class Kept:
    """The bytes that cached decisions take: clients without rights choose the names."""

    size: int = 0
    full: bool = False

    def takes(self, size: int) -> bool:
        """Count so many more bytes; return False, uncounted, if there is no room for them."""
        if self.size + size > BYTES_REMEMBERED:
            self.full = True
            return False
        self.size += size
        return True


class Decisions(dict[str, bool]):
    """By name: whether a caller may do one thing with resources of one type."""

    __slots__ = ("_allows", "_kept")

    def __init__(self, allows: Callable[[str], bool], kept: Kept) -> None:
        super().__init__()
        self._allows, self._kept = allows, kept

    def __missing__(self, name: str) -> bool:
        allowed = self._allows(name)
        if self._kept.takes(getsizeof(name) + ENTRY_BYTES):
            self[name] = allowed
        return allowed


class Rights(dict[int, Decisions]):
    """The decisions about one caller, by right."""

    __slots__ = ("_allows", "_kept")

    def __init__(self, allows: Callable[[Operation, ResourceType, str], bool], kept: Kept) -> None:
        super().__init__()
        self._allows, self._kept = allows, kept

    def __missing__(self, right: int) -> Decisions:
        operation, kind = Operation(right >> 8), ResourceType(right & 0xFF)
        decisions = Decisions(partial(self._allows, operation, kind), self._kept)
        if self._kept.takes(ASKER_BYTES):
            self[right] = decisions
        return decisions


class Asker:
    """One principal at one address; `rights[right_of(…)][name]` is whether it may."""

    __slots__ = ("_authorizer", "_host", "_principal", "is_super", "rights")

    def __init__(self, authorizer: Authorizer, principal: Principal, client_host: str, kept: Kept) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = client_host.removeprefix("/")
        self.is_super = authorizer.is_super(principal)
        self.rights = Rights(partial(authorizer.allows, principal, self._host), kept)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether this caller may do this with the resource of this name."""
        return self.rights[right_of(operation, kind)][name]

    def may_somewhere(self, operation: Operation, kind: ResourceType) -> bool:
        """Return whether there may be a resource of this type that this caller may do this with."""
        return self._authorizer.allows_somewhere(self._principal, self._host, operation, kind)

    def on_cluster(self, operation: Operation) -> bool:
        """Return whether this caller may do this with the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def describes(self, topic: str) -> bool:
        """Return whether this caller may describe a topic."""
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def operations(self, kind: ResourceType, name: str) -> int:
        """Return this caller's operations on a resource: a bit for each (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.may(operation, kind, name))


class Askers:
    """The callers of a cluster, by principal and address.

    All decisions are dropped when a rule is added or removed, and when there is no room for another.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._changes = authorizer.changes
        self._known: dict[tuple[str, str, str], Asker] = {}
        self._kept = Kept()

    def of(self, call: AnyCall) -> Asker:
        """Return who sent this request."""
        if self._kept.full or self._changes != self._authorizer.changes:
            self._changes = self._authorizer.changes
            for asker in self._known.values():  # parked calls still hold some
                asker.rights.clear()
            self._known.clear()
            self._kept.size, self._kept.full = 0, False
        principal = call.principal
        key = principal.kind, principal.name, call.client_host
        known = self._known.get(key)
        if known is None:
            known = Asker(self._authorizer, principal, call.client_host, self._kept)
            if self._kept.takes(ASKER_BYTES + getsizeof(principal.name)):
                self._known[key] = known
        return known
