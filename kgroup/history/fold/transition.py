"""One step of a group: the records of a batch, the states around them, and the events so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import SHOWN, Event, Kind, Unowned
from kgroup.history.fold.leave_causes import Lives, Way
from kgroup.history.fold.ownership import GivenUp
from kgroup.history.fold.removals import Age, Today
from kgroup.history.fold.restarts import Absences
from kgroup.history.fold.view import RecordedMember, View
from kgroup.history.log_items import Committed

Fields: TypeAlias = dict[str, Any]
"""Fields of an event by their names."""


class Start(NamedTuple):
    """A rebalance that began: when in ms, why, and whether records prove that."""

    at_ms: int
    cause: str
    proven: bool


@dataclass(slots=True)
class Carry:
    """What one step of a group leaves for the next: a rebalance in progress, a conversion just made."""

    started: list[Start] = field(default_factory=list)
    """Each start since the group was last converged."""
    conversion: str | None = None
    revoking: dict[str, int] = field(default_factory=dict)
    """Members that must give partitions up, and since when (ms)."""
    slowest: tuple[int, str] | None = None
    """In this rebalance: the longest time (ms) that a member took to give up partitions, and its name."""
    absences: Absences = field(default_factory=Absences)
    lives: Lives = field(default_factory=Lives)

    def begun_before_a_gap(self) -> None:
        """Note that the rebalances in progress may have ended since, and others begun."""
        self.started = [start._replace(proven=False) for start in self.started]


@dataclass(slots=True)
class GroupStep:
    """The records of one group in one batch, and what they changed."""

    group: str
    log_partition: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    before: View
    after: View
    freed: frozenset[TopicPartition] = frozenset()
    unowned: tuple[Unowned, ...] = ()
    given_up: GivenUp = field(default_factory=dict)
    """What the generation before revoked from members that stayed."""
    removed: tuple[TopicPartition, ...] = ()
    age: Age = Age.NONE
    """How old the removed offsets were."""
    offsets: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    """The group's committed offsets."""
    today: Today = field(default_factory=Today)
    solid: bool = True
    """Whether no earlier record of the group is missing."""
    gap: bool = False
    """Whether records may be missing of what changed."""
    ways: dict[str, tuple[Way, ...]] = field(default_factory=dict)
    """How each member that is gone may have left, by its id."""
    events: list[Event] = field(default_factory=list)

    def caused(self, cause: str, proven: bool) -> tuple[str, bool]:
        """Return the cause of the new epoch; not proven where records of it, or of those before, are gone."""
        if not self.gap:
            return cause, proven
        return f"records of it, or of others before it, are gone; by what is left: {cause}", False

    def report(self, kind: Kind, detail: str, member: RecordedMember | None = None, **more: Any) -> None:
        """Append an event with this step's place and epochs; `more` overrides any field."""
        fields: Fields = {
            "kind": kind,
            "group": self.group,
            "protocol": self.after.kind or self.before.kind,
            "log_partition": self.log_partition,
            "offset": self.first_offset,
            "end_offset": self.last_offset,
            "timestamp_ms": self.timestamp_ms,
            "end_timestamp_ms": self.timestamp_ms,
            "detail": detail,
            "epoch": self.after.epoch,
            "previous_epoch": self.before.epoch,
            "member_id": member.member_id if member else None,
            "instance_id": member.instance_id if member else None,
        }
        self.events.append(Event(**{**fields, **more}))

    def report_target(self, shares: Sequence[str]) -> None:
        """Append that a target was computed, with the members' first shares; nothing if there are none."""
        if shares:
            shown = "; ".join(sorted(shares)[:SHOWN]) + ("; …" if len(shares) > SHOWN else "")
            self.report(Kind.TARGET_COMPUTED, f"target of epoch {self.after.assignment_epoch}: {shown}")
