"""One step of a member towards its target assignment (KIP-848, member reconciliation; KIP-1251)."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from kgroup.coordinator.assignors.interface import Assignment
from kgroup.coordinator.consumer.member import NO_PARTITIONS, Current, Epochs, MemberState
from kgroup.domain import NO_EPOCH
from kgroup.errors import ErrorCode, Refused

Owned: TypeAlias = dict[bytes, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go: the target of `epoch`, and the topics it subscribes to now.

    `owned` is what the member reports to own, None if it does not report. `owner_epoch` returns the member
    epoch at which a partition is owned, NO_EPOCH when it is free. `names_nothing` is on for a member
    without any subscription; topics that are named need not exist.
    """

    epoch: int
    target: Assignment
    subscribed: Set[bytes]
    owned: Owned | None
    subscription_changed: bool
    owner_epoch: Callable[[bytes, int], int]
    names_nothing: bool = False

    def still_owns(self, partitions: Epochs) -> bool:
        """Return whether the member has yet to report that it revoked all of these."""
        if self.owned is None:
            return True
        return any(not self.owned.get(topic, frozenset()).isdisjoint(p) for topic, p in partitions.items())


def reconcile(current: Current, goal: Goal) -> Current:
    """Return the member's next epochs and partitions; `current` itself if there is nothing to do.

    A member first revokes what is no longer its own, in its present epoch; only then it moves to the
    target epoch and gets what others have released (KIP-848, "Member reconciliation"; CP-28). So no
    partition ever has two owners, and one answer never both revokes and assigns.
    """
    match current.state:
        # There is a newer target: move towards it, whatever the steps between were.
        case MemberState.STABLE if current.epoch != goal.epoch:
            return _towards_target(current, goal, current.epoch)
        # At the target, which does not know yet what the member has unsubscribed from.
        case MemberState.STABLE if goal.subscription_changed:
            return _without_unsubscribed(current, goal)
        case MemberState.STABLE:
            return current
        # It has reported what it owns, and nothing of that is to be revoked: acknowledged. The next step may
        # revoke again, if a newer target took more away meanwhile.
        case MemberState.UNREVOKED_PARTITIONS if not goal.still_owns(current.revoking):
            return _towards_target(current, goal, current.epoch)
        # Not acknowledged, and it subscribes to even less now: that joins what it is revoking.
        case MemberState.UNREVOKED_PARTITIONS if goal.subscription_changed:
            return _without_unsubscribed(current, goal)
        # Not acknowledged: only its rebalance timeout ends this (CP-17). Even a newer target waits.
        case MemberState.UNREVOKED_PARTITIONS:
            return current
        # It waits for others. It now gets what they have released since, from the newest target.
        case MemberState.UNRELEASED_PARTITIONS:
            return _towards_target(current, goal, current.epoch)
        # A record of a later version has put it in an unknown state. What it owns is unknown, so it must own
        # nothing before it starts over.
        case MemberState.UNKNOWN if goal.owned is None or goal.owned:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        case _:
            return _towards_target(current, goal, goal.epoch)


def _towards_target(current: Current, goal: Goal, epoch: int) -> Current:
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, dict[int, int]] = {}
    unreleased = False
    for topic in {**current.assigned, **goal.target}:
        # The target is older: a topic unsubscribed since must not return with it.
        target = goal.target.get(topic, ()) if topic in goal.subscribed else ()
        held = current.assigned.get(topic, {})
        targeted = set(target)
        # Kept and revoked partitions keep the epoch they were assigned at (KIP-1251; AE-15, AE-16).
        _put(kept, topic, {p: e for p, e in held.items() if p in targeted})
        _put(revoking, topic, {p: e for p, e in held.items() if p not in targeted})
        own_revoking = current.revoking.get(topic, {})
        for partition in target:
            if partition in held:
                continue
            # What the member itself has just revoked counts as owned by it until its record says otherwise.
            # If returned, it is assigned at a new epoch: a commit from before the revocation is refused
            # (OC-24).
            if goal.owner_epoch(topic, partition) == NO_EPOCH or partition in own_revoking:
                free.setdefault(topic, {})[partition] = goal.epoch
            else:
                unreleased = True
    # A member that reports to own none of them needs no round for revoking: a classic eager member, which
    # revoked all before it joined, and a member that restarts with epoch 0.
    if revoking and goal.still_owns(revoking):
        return Current(epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    for topic, partitions in free.items():
        kept[topic] = {**kept.get(topic, {}), **partitions}
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return Current(goal.epoch, current.epoch, state, kept, NO_PARTITIONS)


def _without_unsubscribed(current: Current, goal: Goal) -> Current:
    """Revoke topics no longer subscribed to, in the present epoch, before any target does.

    A client drops them the moment it unsubscribes; if they stayed with it until the next computation,
    no member would read them during the assignment interval.
    """
    dropped = {topic: p for topic, p in current.assigned.items() if topic not in goal.subscribed}
    # Without any subscription Kafka goes on even if nothing is owned: the epoch becomes the previous one too.
    # Not so for a member that has no record of an assignment yet.
    known = current.previous_epoch != NO_EPOCH
    nothing_left = known and goal.names_nothing and not current.revoking
    if not dropped and not nothing_left:
        return current
    kept = {topic: p for topic, p in current.assigned.items() if topic in goal.subscribed}
    revoking = {**current.revoking}
    for topic, partitions in dropped.items():
        revoking[topic] = {**revoking.get(topic, {}), **partitions}
    if revoking and goal.still_owns(revoking):
        return Current(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return replace(current, previous_epoch=current.epoch, assigned=kept)


def _put(by_topic: dict[bytes, dict[int, int]], topic: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        by_topic[topic] = partitions
