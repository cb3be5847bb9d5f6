"""Whom a group expects: instance ids registered before their members come, and how many shall be active.

Two ideas that KIP-345 left to future work, as settings of a group (SM-80 to SM-85, OC-06, OC-07). No Kafka
has them: a group without these settings is served exactly as Kafka serves it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgroup.coordinator.config import INT32_MAX, whole_number
from kgroup.errors import ErrorCode, Refused

REGISTERED = "kgroup.registered.instance.ids"
WAIT = "kgroup.registration.wait.ms"
TARGET_SIZE = "kgroup.target.group.size"
_LEAST = {WAIT: 0, TARGET_SIZE: 1}
LISTS = frozenset({REGISTERED})
SETTINGS = (REGISTERED, WAIT, TARGET_SIZE)


@dataclass(frozen=True, slots=True)
class Roster:
    """What the settings of one group say; `wait_ms` None is the group's rebalance timeout."""

    registered: tuple[str, ...] = ()
    wait_ms: int | None = None
    target_size: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Roster:
        """The roster in a group's dynamic settings, which `check` has seen."""
        return cls(
            registered_in(settings),
            int(settings[WAIT]) if WAIT in settings else None,
            int(settings[TARGET_SIZE]) if TARGET_SIZE in settings else None,
        )

    def missing(self, present: Collection[str]) -> tuple[str, ...]:
        """The registered ids that are not among those present, in the order of registration."""
        return tuple(instance_id for instance_id in self.registered if instance_id not in present)

    def is_awaited(self, present: Collection[str], size: int) -> bool:
        """Whether a group of `size` members, these instance ids among them, is not complete yet."""
        return bool(self.missing(present)) or (self.target_size is not None and size < self.target_size)


class Hold(NamedTuple):
    """Until when a target waits, and up to which group epoch only joins of registered members asked for it.

    `first` where nothing was assigned when the wait began.
    """

    epoch: int
    until_ms: int
    first: bool


def registered_in(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The registered instance ids in a group's settings, each once, in order."""
    parts = (part.strip() for part in settings.get(REGISTERED, "").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def check(name: str, text: str) -> None:
    """Refuse a value that one of SETTINGS cannot have (INVALID_CONFIG)."""
    if name in LISTS:
        return
    try:
        whole_number(text, _LEAST[name], INT32_MAX)
    except ValueError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{name}={text[:200]} {wrong}") from None
