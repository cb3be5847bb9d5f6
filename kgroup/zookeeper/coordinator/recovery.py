"""What a new coordinator waits for before it touches a group, and when a group is forgotten (8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import uncertain
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.owners import Owners, read_owners
from kgroup.zookeeper.coordinator.registries import Group, Job, RegisteredConsumer, Stage
from kgroup.zookeeper.coordinator.target import consumer_of
from kgroup.zookeeper.store.operations import Failure

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term


class Recovery:
    """Looks who owned a group's partitions before, and waits for them as long as they may deliver."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def load(self, group: Group) -> None:
        """The group is new here: read who is known of it (era 8.1)."""
        read_owners(self._term, group, lambda owners: self._loaded(group, owners))

    def registered(self, group: Group, member: RegisteredConsumer) -> None:
        """Somebody has come, having stopped its fetchers (era 8.2, 9.2): see to the group if it is time."""
        self._term.timers.cancel(group.idle_timer)
        group.idle_timer = None
        group.awaited.discard(member.consumer_id)
        if group.stage is Stage.RECOVERING and group.all_awaited and not group.awaited:
            self._normal(group)
        else:
            self._term.rebalancers.add(group)

    def idle(self, group: Group) -> None:
        """Nobody is left: forget the group unless somebody comes (era 8.5)."""
        self._arm_idle(group, self._term.core.now_ms + self._term.core.config.empty_group_ms)

    def _arm_idle(self, group: Group, due_ms: int) -> None:
        self._term.timers.cancel(group.idle_timer)
        group.idle_timer = self._term.timers.arm(due_ms, lambda: self._forget(group))

    def _forget(self, group: Group) -> None:
        group.idle_timer = None
        now_ms = self._term.core.now_ms
        lease_ends = [member.lease_end_ms for member in group.departed.values()]
        if group.jobs or group.run is not None or group.rebalance_initiated or group.stage is Stage.LOADING:
            self._arm_idle(group, now_ms + self._term.core.config.empty_group_ms)
        elif group.changed:
            # Nothing that was reported is forgotten before it is written.
            self._term.committer.flush(group, lambda _: None)
            self._arm_idle(group, now_ms + self._term.core.config.commit_interval_ms)
        elif any(end > now_ms for end in lease_ends):
            self._arm_idle(group, max(lease_ends))
        else:
            group.dropped = True
            self._term.interests.drop(group)
            del self._term.groups[group.group_id]

    def _loaded(self, group: Group, owners: Owners | Failure) -> None:
        if isinstance(owners, Failure):
            if not uncertain((owners,)):
                text = f"owners of group {group.group_id} cannot be read: {owners.value}"
                self._term.core.log(Level.ERROR, text)
            self._term.when_connected(lambda: None if group.dropped else self.load(group))
            return
        path = paths.group(group.group_id)
        if path not in group.there:
            self._term.writes.add(group, Job(lambda: {path: b""}, lambda _: None))
        group.awaited = {consumer_of(thread) for thread in owners.threads.values()} - {""}
        group.all_awaited = not owners.starting
        known = bool(group.awaited) or owners.starting
        group.awaited -= group.members.keys()
        config, core = self._term.core.config, self._term.core
        longest = owners.session_timeout_ms or config.max_session_ms
        until = self._term.elected_at_ms + longest + self.old_lease_ms()
        if not known or until <= core.now_ms or (group.all_awaited and not group.awaited):
            self._normal(group)
            return
        group.stage = Stage.RECOVERING
        waiting = ", ".join(sorted(group.awaited)[:3])
        core.log(Level.INFO, f"group {group.group_id} waits for {len(group.awaited)} consumers: {waiting}")

        def waited() -> None:
            if group.stage is Stage.RECOVERING and not group.dropped:
                self._normal(group)

        self._term.timers.arm(until, waited)

    def all_known_ms(self) -> int:
        """When whoever read before the election is registered, or delivers no more, whatever its session."""
        longest = self._term.core.config.max_session_ms
        return self._term.elected_at_ms + longest + self.old_lease_ms()

    def old_lease_ms(self) -> int:
        """How long the old coordinator may have taken answers after this one was elected.

        Not at all if its session has expired, for its lease ended before that; but nothing tells that from a
        node that somebody deleted, and then it goes on until its lease ends, 2Z/3 behind its last probe.
        """
        return 2 * self._term.core.negotiated_ms // 3

    def _normal(self, group: Group) -> None:
        group.stage = Stage.NORMAL
        group.awaited.clear()
        if group.members:
            self._term.rebalancers.add(group)
