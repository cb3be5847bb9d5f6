"""What a row about a request says: its entries, how one is refused, and the rights it needs.

`requests.py` has the rows. Refusals, rights and rules of faults are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.shapes import slots_of
from kgroup.protocol.structs import Struct
from kgroup.security.acls import Operation, ResourceType
from kgroup.security.needs import Need

TOPIC, PARTITION, GROUP, TXN_ID, RESOURCE = "topic", "partition", "group", "txn_id", "resource"
"""What entries are: a fault rule selects them by these names; RESOURCE is a config resource or a member."""
RESOURCE_TYPES = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    TXN_ID: ResourceType.TRANSACTIONAL_ID,
}
Entry: TypeAlias = Any
"""A part of a request or answer, of the class that has the fields a row names."""
Refuse: TypeAlias = Callable[[Entry, ErrorCode, str | None], Message]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a request, and the one of its answer that has an entry for each of its entries."""

    asked: str
    answered: str
    names: tuple[str, ...] = ()
    """The fields by which an answer names its entry; "key=name" where the entry has another field, "key="
    where the entry is the name. The first one names a resource, or a partition."""
    inner: Array | None = None
    """The array in each entry whose entries have the errors, such as a topic's partitions."""
    kind: str | None = None
    """What the entries are; None if no rule of rights or faults looks at them one by one."""
    error: str = "error_code"
    failed: Mapping[str, object] = field(default_factory=dict)
    """Fields of a failed entry that differ from their defaults."""
    explained: bool = True
    """Whether a failed entry has the message, if its class has a field for it; in Kafka not all do."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The fields that name an entry: of the answer, and of the entry, "" where it is the name."""
        return tuple(
            (key, asked if sign else key) for key, sign, asked in (n.partition("=") for n in self.names)
        )

    def name_of(self, entry: Entry) -> Any:
        """Return what names an entry of the request."""
        asked = self.pairs[0][1]
        return getattr(entry, asked) if asked else entry

    def named(self, answer: Entry) -> tuple[object, ...]:
        """Return all that names an entry of the answer."""
        return tuple(getattr(answer, key) for key, _ in self.pairs)

    def refused(
        self, owner: Entry, code: ErrorCode, message: str | None, answer: type[Struct]
    ) -> tuple[Entry, ...]:
        """Return the answers that refuse all entries of `owner`; `answer` is the class that has them."""
        return tuple(self.refusal(e, code, message, answer) for e in getattr(owner, self.asked) or ())

    def refusal(self, entry: Entry, code: ErrorCode, message: str | None, answer: type[Struct]) -> Entry:
        """Return the answer about one entry, which refuses it."""
        made = _item(answer, self.answered)
        values: dict[str, object] = {
            key: getattr(entry, asked) if asked else entry for key, asked in self.pairs
        }
        if self.inner is not None:
            values[self.inner.answered] = self.inner.refused(entry, code, message, made)
        else:
            values |= {self.error: code, **self.failed}
            if self.explained and has_field(made, "error_message"):
                values["error_message"] = message
        return made(**values)


def _item(cls: type[Struct], array: str) -> type[Entry]:
    shape = next(slot.shape for slot in slots_of(cls) if slot.name == array)
    assert shape.item is not None and shape.item.struct is not None
    return shape.item.struct


def has_field(cls: type[Struct], name: str) -> bool:
    """Return whether a message or a part of one has a field."""
    return name in cls.__dataclass_fields__


@dataclass(frozen=True, slots=True)
class Whole:
    """Rights: all of a request is allowed, or nothing; the first need that is not met refuses it."""

    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Each:
    """Rights: an operation on every entry by itself, after what the whole request needs.

    With `even_none` the handler is called even when no entry is left, as the group or the like may be wrong
    as well.
    """

    operation: Operation
    needs: tuple[Need, ...] = ()
    unless: Need | None = None
    """With this right no other is needed."""
    even_none: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """Rights: all callers may ask, and see the entries of the answer's array that they may describe."""

    array: str
    kind: ResourceType
    name: str
    unless: Need | None = None
    """With this right they see all."""


@dataclass(frozen=True, slots=True)
class By:
    """Rights that a function of `kgroup.broker.rights` decides, named as "module.function".

    It is for a request whose rights depend on more than names: on its version, on settings and on other
    fields of it, on what its answer shows. The function's docstring says what it requires.
    """

    function: str


Rights: TypeAlias = Whole | Each | Shown | By
FREE = Whole()
"""Rights: none."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The row of an API: all that is not the same for every request."""

    rights: Rights
    entries: Array | None = None
    """Without any, a request is answered as a whole."""
    since: int = 0
    """The first version with `entries`; before, they are those of `older`."""
    older: Array | None = None
    on_top: bool = False
    """Whether a refusal of the whole request has its error on top only, though the answer has entries."""
    fails_whole: bool = False
    """Whether a fault rule fails all of a request, which it selects by group: kfake has no entries for it."""
    top_level: bool = False
    """Whether a fault rule fails the answer's own code, as there is nothing to select (kfake)."""
    late: frozenset[ErrorCode] = frozenset()
    """The errors that a broker may answer with after the work was done (as in kfake)."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Fields of a refusal that differ from the response's defaults."""
    refuse: Refuse | None = None
    """The refusal of a request in which some value of the request, or of the code, stands elsewhere."""

    def entries_at(self, version: int) -> Array | None:
        """Return the array of entries of a version."""
        return self.entries if version >= self.since else self.older

    def refusal(
        self, request: Message, code: ErrorCode, message: str | None, response: type[Entry]
    ) -> Message:
        """Return the response that refuses all of a request."""
        if self.refuse is not None:
            return self.refuse(request, code, message)
        values: dict[str, object] = dict(self.values)
        if has_field(response, "error_code"):
            values["error_code"] = code
        if has_field(response, "error_message"):
            values["error_message"] = message
        for array in () if self.on_top else (self.older, self.entries):
            if array is not None:
                more = array.refused(request, code, message, response)
                values[array.answered] = (*values.get(array.answered, ()), *more)  # type: ignore[misc]
        made: Message = response(**values)
        return made
