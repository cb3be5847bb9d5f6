"""What a test does to a running cluster: to its members, and to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack

from kgroup.admin.models import GroupDescription
from kgroup.api import Kafka
from kgroup.arguments import checked
from kgroup.domain import count_of
from kgroup.errors import ConfigError, TimedOut

if TYPE_CHECKING:
    from kgroup.broker.control.control import Control
    from kgroup.history.fold.events import Event
    from kgroup.scenario.playing.play import Play
    from kgroup.testing.faults import Fault
    from kgroup.testing.serving import Serving

T = TypeVar("T")
LOOK_S = 0.01


class Fields(TypedDict, total=False):
    """The fields of a rule; kgroup.broker.control.faults.rules.Rule explains each of them."""

    keys: Sequence[str | int]
    nodes: Sequence[int]
    client: str
    topic: str
    topic_id: str
    partitions: Sequence[int]
    group: str
    txn_id: str
    resource: str
    top_level: bool
    error: str | int
    count: int
    observe: bool
    delay: str
    drop: bool
    cut_after: int
    append_fails: bool
    stale: bool


class Verbs(Kafka):
    """A member is named by its instance id, client id or member id, and by `group` if that is ambiguous.

    ConfigError for a name that no member has, or several have.
    """

    _faults: list[Fault]
    _plays: list[Play]

    def _running(self) -> Serving:
        raise NotImplementedError

    def _do(self, verb: Callable[[Control], T]) -> T:
        serving = self._running()
        return serving.do(lambda: verb(serving.control))

    def _now_ms(self) -> int:
        return self.now_ms()

    def now_ms(self) -> int:
        """Return the time of the brokers, in ms since 1970, UTC; it never goes back."""
        return self._running().cluster.clock.now_ms()

    @checked
    def advance(
        self,
        by: str | timedelta,
        *,
        others: Literal["kept", "silent"] = "kept",
        patience: str | timedelta = "10s",
    ) -> int:
        """Move the brokers' time forward; return the new time in ms; `by` as "45s", "10m" or "7d".

        Everything due happens in order, each at its own time: sessions, rebalances, transactions and offsets
        expire. A member that is connected and not frozen counts as having sent its heartbeats, and gets
        `patience`, in real time, for what a rebalance waits for; "silent" lets all sessions expire.
        """
        serving = self._running()
        return serving.call(serving.control.advance(by, others, patience))["now_ms"]

    @checked
    def expire(self, member: str, *, group: str | None = None) -> str:
        """Expire a member's session now, without moving time; return its member id."""
        return self._do(lambda control: control.expire(member, group))["member"]

    @checked
    def freeze(self, member: str, *, group: str | None = None) -> str:
        """Hold back everything that a member sends to its coordinator; return its member id.

        As if its process had been stopped: what it sends waits for `thaw`. It still receives records.
        """
        return self._do(lambda control: control.freeze(member, group))["member"]

    @checked
    def thaw(self, member: str, *, group: str | None = None) -> str:
        """Serve a frozen member again, first what it has sent meanwhile; return its member id."""
        return self._do(lambda control: control.thaw(member, group))["member"]

    @checked
    def fault(self, *rules: Mapping[str, object], must_fire: bool = False, **rule: Unpack[Fields]) -> Fault:
        """Make brokers answer wrongly, late or not at all; return the requests that this met.

        A rule is given by its fields, `kafka.fault(keys=["Produce"], error="NOT_COORDINATOR", count=3)`,
        several as mappings of the same fields, which are those of kfake. With `must_fire`, the test fails for
        a rule that no request met: leaving the fault's or the cluster's `with` raises FaultUnused.
        ConfigError says what would be right.
        """
        from kgroup.broker.control.faults.rules import Rule
        from kgroup.testing.faults import Fault

        given = [*rules, rule] if rule else rules
        made = [Rule.of(fields) for fields in given]
        serving = self._running()
        fault_set = serving.do(lambda: serving.control.faults.add(made, must_fire=must_fire))
        fault = Fault(serving, fault_set)
        self._faults.append(fault)
        return fault

    def observe(self, **rule: Unpack[Fields]) -> Fault:
        """Count the requests that a rule selects, and serve them normally: `fired` has each of them."""
        return self.fault({"count": -1, **rule, "observe": True})

    def faults(self) -> tuple[Fault, ...]:
        """Return all faults set and not removed together, including those that are spent."""
        self._running()
        return tuple(self._faults)

    def remove_faults(self) -> None:
        """Disable and forget all rules."""
        for fault in self.faults():
            fault.remove()
        self._faults.clear()

    @checked
    def stop_broker(self, node: int) -> None:
        """Stop a broker: its address refuses connections, and brokers with a replica lead instead.

        Partitions without another replica have no leader until `start_broker`.
        """
        self._do(lambda control: control.brokers.stop(node))

    @checked
    def start_broker(self, node: int) -> None:
        """Start a broker again, at its address; leaders stay where they are by now."""
        self._do(lambda control: control.brokers.start(node))

    @checked
    def freeze_broker(self, node: int) -> None:
        """Answer nothing that is sent to a broker, as if its process were stopped; deadlines go on."""
        self._do(lambda control: control.brokers.freeze(node))

    @checked
    def thaw_broker(self, node: int) -> None:
        """Answer what was sent to a frozen broker meanwhile, and what is sent from now on."""
        self._do(lambda control: control.brokers.thaw(node))

    @checked
    def move(self, topic: str, partition: int, node: int) -> None:
        """Make a broker the leader of a partition, in a new epoch."""
        self._do(lambda control: control.brokers.move(topic, partition, node))

    @checked
    def move_coordinator(
        self, group: str, node: int | None = None, *, loading: str | timedelta = "0s"
    ) -> int:
        """Make another broker coordinate a group, the next one or `node`; return which.

        For `loading`, in the brokers' time, it answers COORDINATOR_LOAD_IN_PROGRESS. Other groups of the same
        partition of __consumer_offsets move with it, and all their sessions begin again.
        """
        return self._do(lambda control: control.brokers.move_coordinator(group, node, loading))["node"]

    @checked
    def until_stable(
        self, group: str, *, members: int | None = None, timeout_s: float = 30.0
    ) -> GroupDescription:
        """Return a group once it is stable with that many members; TimedOut with its history."""
        serving = self._running()
        if not serving.call(serving.control.until_stable(group, members, timeout_s)):
            expected = "" if members is None else f" with {members} members"
            seen = serving.do(lambda: serving.control.shown(group))
            why = f"{group} was not stable{expected} in {timeout_s:g} s: last seen {seen}"
            raise TimedOut(why, self.last_events(group))
        return self.describe(group)

    @checked
    def until(self, condition: Callable[[], T], *, group: str | None = None, timeout_s: float = 30.0) -> T:
        """Return what `condition` returns once that is true; TimedOut with the history of `group`.

        It is called repeatedly in this thread, and what it raises is raised. Without `group`, the error has
        the history of all groups that have changed.
        """
        since_ms, end = self.now_ms(), time.monotonic() + timeout_s
        while not (result := condition()):
            if time.monotonic() >= end:
                touched = [group] if group is not None else self.groups_since(since_ms)
                histories = "\n".join(map(self.last_events, touched)) or "no group has changed"
                raise TimedOut(f"the condition did not hold in {timeout_s:g} s", histories)
            time.sleep(LOOK_S)
        return result

    @checked
    def play(
        self,
        scenario: str | Path,
        *,
        part: str | None = None,
        act: Callable[[str], object] | None = None,
        meanwhile: Callable[[], object] | None = None,
        timeout_s: float = 30.0,
    ) -> tuple[Event, ...]:
        """Play the scenario that `kgroup replay-log GROUP --scenario` wrote; return the group's history.

        All members are played, except `part`, a member's name, instance id or client id: that is your client,
        with the same id. `act` is called with "start", "stop" and "restart" when it must do so, `meanwhile`
        repeatedly, for example to poll it; both in this thread. Time moves as it did. Members stay in the
        group until the cluster stops. Missing topics are created. ConfigError for an invalid file or part,
        and if the group already exists; TimedOut, with the group's history, for a step that did not happen in
        `timeout_s`.
        """
        from kgroup.scenario.playing.cast import play_of
        from kgroup.scenario.recorded import read_scenario
        from kgroup.testing.staging import Staging

        recorded = read_scenario(Path(scenario))
        play = play_of(
            recorded,
            Staging(self._running(), self),
            part=part,
            act=act,
            meanwhile=meanwhile,
            timeout_s=timeout_s,
        )
        there = {topic.name: len(topic.partitions) for topic in self.topics()}
        for name, partitions in recorded.head.topics.items():
            if name not in there:
                self.create_topic(name, partitions)
            elif there[name] < partitions:
                raise ConfigError(
                    f"topic {name} has {count_of(there[name], 'partition')}, and the scenario "
                    f"needs {partitions}",
                    "omit the topic from topics=: play creates it",
                )
        self._plays.append(play)
        try:
            play.run()
        except TimedOut as error:
            raise TimedOut(error.message, self.last_events(play.group_id)) from None
        return self.history(play.group_id)

    @checked
    def groups_since(self, since_ms: int) -> tuple[str, ...]:
        """Return the groups with an event at that time or later, also deleted ones and those with none."""
        from kgroup.admin.read.history import story_of

        listed = [group.group_id for group in self.groups()]
        with self.admin() as admin:
            events = story_of(admin).events
        recorded = {event.group for event in events}
        changed = [event.group for event in events if event.group and event.last_ms >= since_ms]
        return tuple(dict.fromkeys([*changed, *(group for group in listed if group not in recorded)]))
