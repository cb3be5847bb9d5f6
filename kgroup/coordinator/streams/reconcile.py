"""One step of a member towards its target tasks (KIP-1071; KIP-1251 for the epochs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kgroup.coordinator.streams.group import Owners
from kgroup.coordinator.streams.member import NOTHING_HELD, Current, HeldTasks, MemberState, TaskEpochs
from kgroup.coordinator.tasks.values import Tasks, TaskSet
from kgroup.errors import ErrorCode, Refused

Unreleased: TypeAlias = Callable[[str, int], bool]
"""Whether a task of a subtopology cannot be given to the member yet."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member of `process_id` shall go: the target of `epoch`.

    `owned` is what the member says it has, None when it does not say; `owners` who has what now.
    """

    epoch: int
    target: TaskSet
    process_id: str
    owned: TaskSet | None
    owners: Owners

    def still_owns(self, tasks: HeldTasks) -> bool:
        """Whether the member has not yet said that it gave all of these up."""
        return self.owned is None or tasks.any_of(self.owned)

    def active_is_unreleased(self, subtopology: str, partition: int) -> bool:
        """An active task has one owner in the group, and a process has no two copies of a task's state."""
        if self.owners.active_process(subtopology, partition) is not None:
            return True
        return self.owners.keeps(self.process_id, subtopology, partition)

    def copy_is_unreleased(self, subtopology: str, partition: int) -> bool:
        """A copy may be anywhere but where the process has the task already, whatever for."""
        if self.owners.active_process(subtopology, partition) == self.process_id:
            return True
        return self.owners.keeps(self.process_id, subtopology, partition)


def reconcile(current: Current, goal: Goal) -> Current:
    """The member's next epochs and tasks; `current` itself when there is nothing to do.

    A member gives up what is not its own any more before it gets what others have released, so that no task
    is processed twice at a time.
    """
    match current.state:
        # There is a newer target: go towards it.
        case MemberState.STABLE if current.epoch != goal.epoch:
            return _towards_target(current, goal, current.epoch)
        case MemberState.STABLE:
            return current
        # It has said what it has, and nothing of that is to be revoked: acknowledged, go on. Its epoch
        # rises by one even if it must revoke again, unlike a consumer's: so it is in Kafka 4.3.1.
        case MemberState.UNREVOKED_TASKS if not goal.still_owns(current.revoking):
            return _towards_target(current, goal, current.epoch + 1)
        # Not acknowledged: only its rebalance timeout ends this.
        case MemberState.UNREVOKED_TASKS:
            return current
        # It waits for others: what they released since, it gets now.
        case MemberState.UNRELEASED_TASKS:
            return _towards_target(current, goal, current.epoch)
        # A record of a later version has put it in a state we do not know. What it has cannot be told, so it
        # must have nothing before it starts anew.
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
    active = _active(held.active, goal)
    standby = _copies(held.standby, goal.target.standby, goal.copy_is_unreleased)
    warmup = _copies(held.warmup, goal.target.warmup, goal.copy_is_unreleased)
    revoking = HeldTasks(active.revoked, standby.revoked, warmup.revoked)
    # A member that says it has none of them any more needs no round for revoking, as one that restarts.
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


def _active(held: TaskEpochs, goal: Goal) -> _Active:
    """Active tasks keep the epoch they were assigned at, kept or revoked; new ones have the target's."""
    target = goal.target.active
    kept = _filled({s: {p: e for p, e in ps.items() if p in target.get(s, ())} for s, ps in held.items()})
    revoked = _filled(
        {s: {p: e for p, e in ps.items() if p not in target.get(s, ())} for s, ps in held.items()}
    )
    free, unreleased = _free(held, target, goal.active_is_unreleased)
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
    """Of what the target adds, the tasks that can be given now, and whether any cannot."""
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
