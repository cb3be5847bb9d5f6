"""What a caller must be allowed to do before a request is carried out, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as declared
from operator import attrgetter
from typing import Any, Protocol

from kgroup.errors import ErrorCode, Refused
from kgroup.security.acls import CLUSTER_NAME, Operation, ResourceType

REFUSALS: Mapping[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def right_of(operation: Operation, kind: ResourceType) -> int:
    """Return the number under which `Asks.rights` has the decisions on an operation and a resource type."""
    return int(operation) << 8 | int(kind)


class Asks(Protocol):
    """A caller: `rights[right_of(…)][name]` is whether it may."""

    @property
    def rights(self) -> Mapping[int, Mapping[str, bool]]:
        """Return the decisions about this caller, by right and by the resource's name."""
        ...


@dataclass(frozen=True, slots=True)
class Need:
    """An operation on the resource that a field of the request names; on the cluster without one."""

    operation: Operation
    kind: ResourceType = ResourceType.CLUSTER
    field: str | None = None
    right: int = declared(init=False)
    name: Callable[[Any], str] = declared(init=False)
    """Of the resource, from the request."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", right_of(self.operation, self.kind))
        object.__setattr__(
            self, "name", attrgetter(self.field) if self.field else lambda request: CLUSTER_NAME
        )

    def met(self, asker: Asks, request: Any) -> bool:
        """Return whether the caller has this right."""
        return asker.rights[self.right][self.name(request)]

    def check(self, asker: Asks, request: Any) -> None:
        """Raise Refused for a caller without this right."""
        if not asker.rights[self.right][self.name(request)]:
            text = None
            if self.kind is ResourceType.CLUSTER:
                text = f"Request needs {self.operation.name} permission."
            raise Refused(REFUSALS[self.kind], text)
