"""Expected members of a group: instance ids registered before their members join, and the target size.

Two ideas that KIP-345 left to future work, as settings of a group (SM-80 to SM-85, OC-06, OC-07). No Kafka
has them: a group without these settings is served exactly as Kafka serves it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgroup.settings import LIST, Setting, number

REGISTERED = "kgroup.registered.instance.ids"
WAIT = "kgroup.registration.wait.ms"
TARGET_SIZE = "kgroup.target.group.size"
_ROWS = (
    Setting(REGISTERED, LIST, ()).documented("Instance ids that the group waits for before it assigns."),
    number(WAIT, 0).documented("How long the group waits for registered members."),
    number(TARGET_SIZE, 1, 1).documented("Members that are active at a time; others stand by."),
)
ROWS = {row.name: row for row in _ROWS}
SETTINGS = tuple(ROWS)


@dataclass(frozen=True, slots=True)
class Roster:
    """The expectations in one group's settings; `wait_ms` None is the group's rebalance timeout."""

    registered: tuple[str, ...] = ()
    wait_ms: int | None = None
    target_size: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Roster:
        """Return the roster in a group's dynamic settings, which were checked."""
        return cls(
            registered_in(settings),
            ROWS[WAIT].read(settings[WAIT]) if WAIT in settings else None,
            ROWS[TARGET_SIZE].read(settings[TARGET_SIZE]) if TARGET_SIZE in settings else None,
        )

    def missing(self, present: Collection[str]) -> tuple[str, ...]:
        """Return the registered ids that are not present, in the order of registration."""
        return tuple(instance_id for instance_id in self.registered if instance_id not in present)

    def is_awaited(self, present: Collection[str], size: int) -> bool:
        """Return whether a group of `size` members, with these instance ids, is not complete yet."""
        return bool(self.missing(present)) or (self.target_size is not None and size < self.target_size)


class Hold(NamedTuple):
    """Until when a target waits, and up to which group epoch only joins of registered members asked for it.

    `first` if nothing was assigned when the wait began.
    """

    epoch: int
    until_ms: int
    first: bool


def registered_in(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the registered instance ids in a group's settings, each once, in order."""
    parts = (part.strip() for part in settings.get(REGISTERED, "").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
