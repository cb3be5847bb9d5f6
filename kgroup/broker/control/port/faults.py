"""The verbs about faults: what `kcl fake --control` has, with kgroup's own fields of rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias, TypedDict, cast

from kgroup.broker.control.control import Control
from kgroup.broker.control.declaring import NotThere, Timeout, seconds, verb
from kgroup.broker.control.faults.installed import FaultSet
from kgroup.broker.control.faults.rules import Rule
from kgroup.errors import ConfigError, TimedOut

Rules: TypeAlias = list[Mapping[str, object]]
FaultId: TypeAlias = Annotated[int, "The fault's number."]


class Set(TypedDict):
    """Rules that were set together, and the requests that met them."""

    id: int
    rules: Rules
    hits: int
    left: int
    fired: Rules


class Sets(TypedDict):
    """All faults."""

    faults: Rules


class Removed(TypedDict):
    """How many faults were removed."""

    removed: int


class Hits(TypedDict):
    """How many requests met a fault."""

    hits: int


class FaultVerbs:
    """The faults of a server."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._faults = control.faults

    @verb("POST", "/faults")
    def add(self, rules: Annotated[Rules, "The rules, in the fields of kfake and kgroup's own."]) -> Set:
        """Set rules together."""
        made = []
        for number, fields in enumerate(rules, 1):
            if not isinstance(fields, dict):
                raise ConfigError(f"rule {number} is {fields!r}", "it is an object with the fields of a rule")
            try:
                made.append(Rule.of(fields))
            except ConfigError as error:
                raise ConfigError(f"rule {number}: {error.message}", error.hint) from None
        return _shown(self._faults.add(made))

    @verb("GET", "/faults")
    def every(self) -> Sets:
        """All faults, and which requests met them."""
        return {"faults": [fault.shown() for fault in self._faults.sets.values()]}

    @verb("DELETE", "/faults")
    def remove_every(self) -> Removed:
        """Remove all faults."""
        return {"removed": sum(self._faults.remove(number) for number in tuple(self._faults.sets))}

    @verb("GET", "/faults/{id}")
    def one(self, id: FaultId) -> Set:
        """One fault, and the requests that met it."""
        return _shown(self._found(id))

    @verb("DELETE", "/faults/{id}")
    def remove(self, id: FaultId) -> Removed:
        """Remove one fault."""
        return {"removed": int(self._faults.remove(self._found(id).id))}

    @verb("POST", "/faults/{id}/wait")
    async def wait(
        self,
        id: FaultId,
        hits: Annotated[int, "How many."] = 1,
        timeout: Timeout = "30s",  # noqa: ASYNC109 - the name that kcl has
    ) -> Hits:
        """Wait until so many requests met a fault."""
        fault, limit_s = self._found(id), seconds(timeout)
        if not await self._control.until_hit(fault, hits, limit_s):
            raise TimedOut(f"fault {fault.id} had {len(fault.hits)} of {hits} requests in {limit_s:g} s")
        return {"hits": len(fault.hits)}

    def _found(self, number: int) -> FaultSet:
        fault = self._faults.sets.get(number)
        if fault is None:
            known = ", ".join(map(str, self._faults.sets))
            hint = f"the ids are {known}" if known else "there is none"
            raise NotThere("id", f"there is no fault {number}", hint)
        return fault


def _shown(faults: FaultSet) -> Set:
    return cast(Set, faults.shown())
