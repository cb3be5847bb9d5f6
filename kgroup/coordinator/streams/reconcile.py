"""One step of a member towards its target tasks (KIP-1071; KIP-1251 for the epochs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from kgroup.coordinator.streams.group import Owners
from kgroup.coordinator.streams.member import NOTHING_HELD, Current, HeldTasks, MemberState, TaskEpochs
from kgroup.coordinator.tasks.values import Tasks, TaskSet, union
from kgroup.errors import ErrorCode, Refused

Unreleased: TypeAlias = Callable[[str, int], bool]
"""Whether a task of a subtopology cannot be assigned to the member yet."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member of `process_id` is to go: the target of `epoch`.

    `owned` is what the member reports to own, None if it does not report; `owners` are the present owners.
    With `in_place` a task that the member has in one role may take another role in the same step.
    """

    epoch: int
    target: TaskSet
    process_id: str
    owned: TaskSet | None
    owners: Owners
    in_place: bool = False

    def still_owns(self, tasks: HeldTasks) -> bool:
        """Return whether the member has yet to report that it revoked all of these."""
        return self.owned is None or tasks.any_of(self.owned)

    def active_is_unreleased(self, subtopology: str, partition: int) -> bool:
        """An active task has one owner in the group, and a process has no two copies of a task's state."""
        if self.owners.active_process(subtopology, partition) is not None:
            return True
        return self.owners.keeps(self.process_id, subtopology, partition)

    def active_is_elsewhere(self, held: HeldTasks, subtopology: str, partition: int) -> bool:
        """As `active_is_unreleased`, but a copy that the member itself has does not matter."""
        return (
            self.owners.active_process(subtopology, partition) is not None
            or self._another_stands_by(held, subtopology, partition)
            or self._another_warms_up(held, subtopology, partition)
        )

    def standby_is_elsewhere(self, held: HeldTasks, subtopology: str, partition: int) -> bool:
        """As `copy_is_unreleased`, except for a task that the member runs or warms up itself."""
        runs = self.owners.active_process(subtopology, partition) == self.process_id
        return (
            (runs and partition not in held.active.get(subtopology, ()))
            or self.owners.stands_by(self.process_id, subtopology, partition)
            or self._another_warms_up(held, subtopology, partition)
        )

    def warmup_is_elsewhere(self, held: HeldTasks, subtopology: str, partition: int) -> bool:
        """As `copy_is_unreleased`, except for a task that the member stands by for itself."""
        return (
            self.owners.active_process(subtopology, partition) == self.process_id
            or self._another_stands_by(held, subtopology, partition)
            or self.owners.warms_up(self.process_id, subtopology, partition)
        )

    def _another_stands_by(self, held: HeldTasks, subtopology: str, partition: int) -> bool:
        own = partition in held.standby.get(subtopology, ())
        return not own and self.owners.stands_by(self.process_id, subtopology, partition)

    def _another_warms_up(self, held: HeldTasks, subtopology: str, partition: int) -> bool:
        own = partition in held.warmup.get(subtopology, ())
        return not own and self.owners.warms_up(self.process_id, subtopology, partition)

    def copy_is_unreleased(self, subtopology: str, partition: int) -> bool:
        """A copy may be anywhere except where the process has the task already, in any role."""
        if self.owners.active_process(subtopology, partition) == self.process_id:
            return True
        return self.owners.keeps(self.process_id, subtopology, partition)


def reconcile(current: Current, goal: Goal) -> Current:
    """Return the member's next epochs and tasks; `current` itself if there is nothing to do.

    A member revokes what is no longer its own before it gets what others have released, so that no
    task is processed twice at a time.
    """
    match current.state:
        # There is a newer target: move towards it.
        case MemberState.STABLE if current.epoch != goal.epoch:
            return _towards_target(current, goal, current.epoch)
        case MemberState.STABLE:
            return current
        # It has reported what it has, and nothing of that is to be revoked: acknowledged. Unlike a
        # consumer's, its epoch rises by one even if it must revoke again: so it is in Kafka 4.3.1.
        case MemberState.UNREVOKED_TASKS if not goal.still_owns(current.revoking):
            return _towards_target(current, goal, current.epoch + 1)
        # Not acknowledged: only its rebalance timeout ends this.
        case MemberState.UNREVOKED_TASKS:
            return current
        # It waits for others: it now gets what they have released since.
        case MemberState.UNRELEASED_TASKS:
            return _towards_target(current, goal, current.epoch)
        # A record of a later version has put it in an unknown state. What it owns is unknown, so it must own
        # nothing before it starts over.
        case MemberState.UNKNOWN if goal.owned is None or goal.owned:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. "
                "The member must abandon all its tasks and rejoin.",
            )
        case _:
            return _towards_target(current, goal, goal.epoch)


def _towards_target(current: Current, goal: Goal, epoch: int) -> Current:
    held = current.assigned
    if goal.in_place:
        active = _active(held.active, goal, partial(goal.active_is_elsewhere, held))
        standby = _copies(held.standby, goal.target.standby, partial(goal.standby_is_elsewhere, held))
        warmup = _copies(held.warmup, goal.target.warmup, partial(goal.warmup_is_elsewhere, held))
        active, standby, warmup = _change_roles(held, goal, active, standby, warmup)
    else:
        active = _active(held.active, goal, goal.active_is_unreleased)
        standby = _copies(held.standby, goal.target.standby, goal.copy_is_unreleased)
        warmup = _copies(held.warmup, goal.target.warmup, goal.copy_is_unreleased)
    revoking = HeldTasks(active.revoked, standby.revoked, warmup.revoked)
    # A member that reports none of them any more, such as one that restarts, needs no revoking round.
    if revoking and goal.still_owns(revoking):
        kept = HeldTasks(active.kept, standby.kept, warmup.kept)
        return Current(epoch, current.epoch, MemberState.UNREVOKED_TASKS, kept, revoking)
    unreleased = active.unreleased or standby.unreleased or warmup.unreleased
    return Current(
        goal.epoch,
        current.epoch,
        MemberState.UNRELEASED_TASKS if unreleased else MemberState.STABLE,
        HeldTasks(active.with_free, standby.with_free, warmup.with_free),
        NOTHING_HELD,
    )


@dataclass(frozen=True, slots=True)
class _Active:
    kept: TaskEpochs
    revoked: TaskEpochs
    with_free: TaskEpochs
    unreleased: bool


@dataclass(frozen=True, slots=True)
class _Copies:
    kept: Tasks
    revoked: Tasks
    with_free: Tasks
    unreleased: bool


def _change_roles(
    held: HeldTasks, goal: Goal, active: _Active, standby: _Copies, warmup: _Copies
) -> tuple[_Active, _Copies, _Copies]:
    """Change the role of tasks at once that the member keeps in another role (Kafka 4.4).

    A task that it runs and is to stand by for becomes a standby when the active task is revoked; copies
    change into each other directly; and a copy that is to run stays a copy until it does.
    """
    standby = _given(
        standby, {subtopology: frozenset(numbers) for subtopology, numbers in held.active.items()}
    )
    for_warmup, for_standby = held.standby, held.warmup
    standby, warmup = (
        _given(_kept_back(standby, _pending(warmup)), for_standby),
        _given(_kept_back(warmup, _pending(standby)), for_warmup),
    )
    standby = _not_revoked(standby, goal.target.active)
    warmup = _not_revoked(warmup, goal.target.active)
    revoking = HeldTasks(active.revoked, standby.revoked, warmup.revoked)
    must_revoke = bool(revoking) and goal.still_owns(revoking)
    granted = {} if must_revoke else _pending(active)
    standby = _until_granted(standby, held.standby, goal.target.active, granted)
    warmup = _until_granted(warmup, held.warmup, goal.target.active, granted)
    return active, standby, warmup


def _pending(part: _Active | _Copies) -> Tasks:
    """Return what the member gets with this step, if it has nothing to revoke."""
    pending = {s: frozenset(ps) - frozenset(part.kept.get(s, ())) for s, ps in part.with_free.items()}
    return {subtopology: numbers for subtopology, numbers in pending.items() if numbers}


def _given(part: _Copies, own: Tasks) -> _Copies:
    """Assign at once what is pending and the member has in another role."""
    pending = _pending(part)
    now = {s: both for s, ps in own.items() if (both := ps & pending.get(s, frozenset()))}
    return replace(part, kept=union(part.kept, now))


def _kept_back(part: _Copies, elsewhere: Tasks) -> _Copies:
    """Do not revoke what becomes a copy of the other kind."""
    return replace(part, revoked=_less(part.revoked, elsewhere))


def _not_revoked(part: _Copies, active: Tasks) -> _Copies:
    return replace(part, revoked=_less(part.revoked, active))


def _until_granted(part: _Copies, held: Tasks, active: Tasks, granted: Tasks) -> _Copies:
    stay = _less({s: both for s, ps in held.items() if (both := ps & active.get(s, frozenset()))}, granted)
    return replace(part, kept=union(part.kept, stay), with_free=union(part.with_free, stay))


def _less(one: Tasks, other: Tasks) -> Tasks:
    return {s: left for s, ps in one.items() if (left := ps - other.get(s, frozenset()))}


def _active(held: TaskEpochs, goal: Goal, is_unreleased: Unreleased) -> _Active:
    """Active tasks keep the epoch they were assigned at, kept or revoked; new ones have the target's."""
    target = goal.target.active
    kept = _filled({s: {p: e for p, e in ps.items() if p in target.get(s, ())} for s, ps in held.items()})
    revoked = _filled(
        {s: {p: e for p, e in ps.items() if p not in target.get(s, ())} for s, ps in held.items()}
    )
    free, unreleased = _free(held, target, is_unreleased)
    with_free = {
        subtopology: {**kept.get(subtopology, {}), **dict.fromkeys(free.get(subtopology, ()), goal.epoch)}
        for subtopology in dict.fromkeys((*kept, *free))
    }
    return _Active(kept, revoked, with_free, unreleased)


def _copies(held: Tasks, target: Tasks, is_unreleased: Unreleased) -> _Copies:
    kept = {s: both for s, ps in held.items() if (both := ps & target.get(s, frozenset()))}
    revoked = {s: gone for s, ps in held.items() if (gone := ps - target.get(s, frozenset()))}
    free, unreleased = _free(held, target, is_unreleased)
    with_free = {
        subtopology: kept.get(subtopology, frozenset()) | free.get(subtopology, frozenset())
        for subtopology in dict.fromkeys((*kept, *free))
    }
    return _Copies(kept, revoked, with_free, unreleased)


def _free(
    held: Tasks | TaskEpochs, target: Tasks, is_unreleased: Unreleased
) -> tuple[dict[str, frozenset[int]], bool]:
    """Return the added tasks of the target that can be assigned now, and whether any cannot."""
    free: dict[str, frozenset[int]] = {}
    unreleased = False
    for subtopology, partitions in target.items():
        added = [p for p in partitions if p not in held.get(subtopology, ())]
        given = frozenset(p for p in added if not is_unreleased(subtopology, p))
        unreleased = unreleased or len(given) < len(added)
        if given:
            free[subtopology] = given
    return free, unreleased


def _filled(tasks: Mapping[str, dict[int, int]]) -> TaskEpochs:
    return {subtopology: partitions for subtopology, partitions in tasks.items() if partitions}
