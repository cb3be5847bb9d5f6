"""The newest record of each key, as when replaying a log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import RecordedMember
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.record_slots import Slots

Part: TypeAlias = Any
"""A record's key or value; the class is known by its slot and its kind of group."""
T = TypeVar("T")
V = TypeVar("V", bound=RecordValue)


def known(kind: type[V], value: RecordValue | None) -> V | None:
    """Return a record's value, known by its key to be of this kind; None for a tombstone."""
    assert value is None or isinstance(value, kind)
    return value


def put(values: dict[str, T], key: str, value: T | None) -> None:
    """Replace an older value; None removes it."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


_MEMBERS = {"member": "clients", "target": "targets", "current": "currents"}
"""The dictionaries by member id, by the slots of their records."""


def places_of(records: Slots) -> dict[type[RecordKey], str]:
    """Return the field of a kind's `EpochRecords` for each class of keys."""
    return {key: _MEMBERS.get(slot, slot) for key, slot in records.by_key()}


@dataclass(slots=True)
class EpochRecords:
    """One group's records of one kind that has epochs; all empty for a group of another kind.

    `newest` is the offset of the newest one that is no tombstone. Each kind declares the types of the other
    fields, by which a group is stored, and may add some.
    """

    KIND: ClassVar[str]
    PLACES: ClassVar[dict[type[RecordKey], str]]

    newest: int = -1
    group: Part = None
    target_epoch: Part = None
    clients: dict[str, Part] = field(default_factory=dict)
    targets: dict[str, Part] = field(default_factory=dict)
    currents: dict[str, Part] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether the group is of this kind: its epoch or a member is on record."""
        return self.group is not None or bool(self.clients or self.currents)

    def replay(self, key: Part, value: Part, names: TopicNames) -> tuple[Collection[str], bool]:
        """Apply a record.

        Return the members to be composed again, and whether the record had a topic name requested before.
        """
        attribute = self.PLACES.get(type(key))
        if attribute is None:
            return self.replay_own(key, value, names)
        if attribute in ("group", "target_epoch"):
            setattr(self, attribute, value)
            return (), False
        put(getattr(self, attribute), key.member_id, value)
        return (key.member_id,), False

    def replay_own(self, key: RecordKey, value: Part, names: TopicNames) -> tuple[Collection[str], bool]:
        """Apply a record that no other kind has."""
        raise NotImplementedError

    def member(self, member_id: str, names: TopicNames) -> RecordedMember | None:
        """Return a member as its records make it; None if none of it is left."""
        raise NotImplementedError

    @property
    def ids(self) -> set[str]:
        """The ids of all members."""
        return self.clients.keys() | self.currents.keys()

    @property
    def epoch(self) -> int:
        # A group of which only some records are left begins at epoch 1, as the coordinator loads it.
        return self.group.epoch if self.group is not None else 1

    @property
    def assignment_epoch(self) -> int:
        return self.target_epoch.assignment_epoch if self.target_epoch is not None else 1
