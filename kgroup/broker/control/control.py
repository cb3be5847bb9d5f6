"""The verbs of a test on a running cluster. All are called on the event loop that serves it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from kgroup.arguments import checked
from kgroup.broker.control.brokers import Brokers
from kgroup.broker.control.declaring import (
    Duration,
    GroupId,
    Named,
    NotThere,
    Now,
    Seen,
    Timeout,
    seconds,
    verb,
)
from kgroup.broker.control.dispatcher import GATE, ControlledDispatcher
from kgroup.broker.control.faults.installed import FaultSet
from kgroup.broker.control.gates import Gate
from kgroup.broker.control.moving import Move
from kgroup.broker.control.presence import the_one
from kgroup.broker.control.waiting import until
from kgroup.broker.server import Server
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.sessions import MemberName, members, session_of
from kgroup.coordinator.state import State
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ConfigError, KgroupError, TimedOut
from kgroup.runtime.clock import MovableClock
from kgroup.timers import TimerKey

FOREVER_MS = 1 << 50
MOST_MS = 366 * 86_400_000
"""As far as one move goes."""
Name: TypeAlias = Annotated[str, "Its instance id, client id or member id."]
OfGroup: TypeAlias = Annotated[str | None, "Its group, where several members have the name."]


class Control:
    """Of a server whose dispatcher is a ControlledDispatcher, and whose clock can be moved."""

    def __init__(self, server: Server) -> None:
        assert isinstance(server.dispatcher, ControlledDispatcher)
        assert isinstance(server.cluster.clock, MovableClock)
        self.cluster = server.cluster
        self.clock = server.cluster.clock
        self.dispatcher = server.dispatcher
        self.faults = self.dispatcher.faults
        self.brokers = Brokers(server, self.dispatcher)
        self._presence = self.dispatcher.presence

    @verb("GET", "/now")
    def now(self) -> Now:
        """The brokers' time, in ms since 1970."""
        return {"now_ms": self.clock.now_ms()}

    @verb("POST", "/advance")
    @checked
    async def advance(
        self,
        by: Annotated[Duration, 'How far, as "45s".'],
        others: Annotated[Literal["kept", "silent"], '"kept", or "silent": all sessions run out.'] = "kept",
        patience: Annotated[Duration, "Real time for what a rebalance waits for."] = "10s",
    ) -> Now:
        """Move the brokers' time forward; members that are connected and not frozen lose nothing by it."""
        by_ms = int(seconds(by) * 1000)
        if by_ms > MOST_MS:
            raise ConfigError(f"time cannot move by {by_ms} ms at once", "366d is the most; move again")
        target_ms = self.clock.now_ms() + by_ms
        keep, patience_s = others == "kept", seconds(patience)
        move = Move(self.dispatcher, self.clock, target_ms, keep=keep, patience_s=patience_s)
        await move.carry_out()
        return self.now()

    @verb("POST", "/members/expire")
    def expire(self, member: Name, group: OfGroup = None) -> Named:
        """End a member's session now."""
        chosen = self._member(member, group)
        state = self.state_of(chosen.group_id)
        session = session_of(state, chosen)
        if session is not None:
            self.fire(session)
        if chosen in members(state):
            why = "it waits for a rebalance, and Kafka expires no member that does"
            raise KgroupError(f"{member} of {chosen.group_id} cannot expire now: {why}", "wait until_stable")
        return _named(chosen)

    @verb("POST", "/members/freeze")
    def freeze(self, member: Name, group: OfGroup = None) -> Named:
        """Freeze a member: hold all that it sends."""
        chosen = self._member(member, group)
        self._presence.frozen[chosen.group_id, chosen.member_id] = chosen
        return _named(chosen)

    @verb("POST", "/members/thaw")
    def thaw(self, member: Name, group: OfGroup = None) -> Named:
        """Thaw a frozen member."""
        chosen = the_one(member, group, self._presence.frozen.values(), "frozen member")
        key = chosen.group_id, chosen.member_id
        del self._presence.frozen[key]
        self.dispatcher.release(key)
        return _named(chosen)

    @verb("POST", "/groups/wait")
    async def wait(
        self,
        group: GroupId,
        members: Annotated[int | None, "How many members it has."] = None,
        state: Annotated[str | None, 'Its state, as "Stable"; in any case.'] = None,
        timeout: Timeout = "30s",  # noqa: ASYNC109 - the name that kcl has
    ) -> Seen:
        """Wait until a group has so many members, or is in a state."""
        if members is None and state is None:
            raise ConfigError("nothing is waited for", "give members, state or both")
        limit_s = seconds(timeout)

        def holds() -> Seen | None:
            seen = self.seen(group)
            if seen is None or members not in (None, seen["members"]):
                return None
            same = state is None or state.lower() == seen["state"].lower()
            return seen if same and self.is_settled(group) else None

        seen = await until(holds, limit_s)
        if seen is None:
            raise TimedOut(f"{group} was not as asked in {limit_s:g} s: it is {self.shown(group)}")
        return seen

    @verb("GET", "/groups/{group}")
    def group(self, group: GroupId) -> Seen:
        """A group's state and size."""
        seen = self.seen(group)
        if seen is None:
            raise NotThere("group", f"there is no group {group}", "POST /groups/wait waits for it")
        return seen

    def set_gate(self, group_id: str, gate: Gate) -> None:
        """Have `gate` decide which requests of a group's members are served; ConfigError if one does."""
        if group_id in self.dispatcher.gates:
            raise ConfigError(f"{group_id} is being played already", "one scenario of a group at a time")
        self.dispatcher.gates[group_id] = gate

    def open_gate(self, group_id: str) -> None:
        """Ask the gate again about what it did not admit."""
        self.dispatcher.release((GATE, group_id))

    def remove_gate(self, group_id: str) -> None:
        """Serve what the gate did not admit, and all that comes."""
        del self.dispatcher.gates[group_id]
        self.dispatcher.release((GATE, group_id))

    def state_of(self, group_id: str) -> State:
        """Return the state of the coordinator that has a group; KgroupError while it is not loaded."""
        partition = self.dispatcher.partition_of(group_id)
        shard = self.cluster.shards[partition]
        if shard is None:
            raise KgroupError(f"{OFFSETS_TOPIC}-{partition}, which has {group_id}, could not be loaded")
        return shard.coordinator.state

    def members_of(self, group_id: str) -> list[MemberName]:
        """Return the members of a group."""
        return [member for member in members(self.state_of(group_id)) if member.group_id == group_id]

    def frozen(self) -> Iterable[MemberName]:
        """Return the members that are frozen."""
        return self._presence.frozen.values()

    def coordinator_of(self, group_id: str) -> int:
        """Return the broker that coordinates a group."""
        return self.cluster.leader_of(OFFSETS_TOPIC, self.dispatcher.partition_of(group_id))

    def keep(self, name: str, group_id: str) -> None:
        """Keep a member's session alive, however long it is frozen."""
        session = session_of(self.state_of(group_id), self._member(name, group_id))
        if session is not None:
            self.postpone(session, FOREVER_MS)

    def postpone(self, key: TimerKey, by_ms: int) -> None:
        """Delay a timer of a group by so much; do nothing for one that is not armed."""
        timers = self.state_of(key.group_id).timers
        if key in timers:
            timers.postpone(key, self.clock.now_ms() + by_ms)

    def fire(self, key: TimerKey) -> None:
        """Make a timer of a group fall due now."""
        now_ms = self.clock.now_ms()
        self.state_of(key.group_id).timers.arm(key, now_ms)
        self.dispatcher.wakeups.run(now_ms)

    def is_stable(self, group_id: str, size: int | None = None) -> bool:
        """Return whether a group has all of its `size` members, with their final assignments."""
        group = self.state_of(group_id).groups.get(group_id)
        if group is None or group.state != "Stable" or size not in (None, len(group.members)):
            return False
        return not (isinstance(group, ClassicGroup) and group.pending_sync)

    def is_settled(self, group_id: str) -> bool:
        """Return whether no member of a stable group still waits for its assignment."""
        group = self.state_of(group_id).groups.get(group_id)
        return group is None or group.state != "Stable" or self.is_stable(group_id)

    def seen(self, group_id: str) -> Seen | None:
        """Return a group's state and the number of its members, None for no group."""
        group = self.state_of(group_id).groups.get(group_id)
        if group is None:
            return None
        return {"group": group_id, "state": str(group.state), "members": len(group.members)}

    def shown(self, group_id: str) -> str:
        """Return a group's state and size, in words."""
        group = self.state_of(group_id).groups.get(group_id)
        return "absent" if group is None else f"{group.state}, members {len(group.members)}"

    async def until_stable(self, group_id: str, size: int | None, within_s: float) -> bool:
        """Return whether that is so before the time, in real time, is over."""
        return await until(lambda: self.is_stable(group_id, size), within_s)

    async def until_hit(self, faults: FaultSet, hits: int, within_s: float) -> bool:
        """Return whether rules have acted on so many requests before the time, in real time, is over."""
        return await until(lambda: len(faults.hits) >= hits, within_s)

    def _member(self, name: str, group_id: str | None) -> MemberName:
        shards = self.cluster.live_shards()
        return the_one(name, group_id, (m for s in shards for m in members(s.coordinator.state)), "member")


def _named(member: MemberName) -> Named:
    return {"group": member.group_id, "member": member.member_id}
