"""A state, played on a real Kafka by real clients: librdkafka's, and Kafka's own for share groups.

Members of streams groups are the embedded exam's own requests, sent to the real broker: each instance of
Kafka Streams needs a JVM of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Offset

from kgroup.errors import ErrorCode
from kgroup.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kgroup.protocol.messages.consumer_group_describe import Member as DescribedMember
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kgroup.protocol.subscription import Assignment, Subscription
from tests.interop.driver import Driver

from .asking import CLEANED_MS, LAGGING
from .machine import NOW_MS, PREFIX
from .playing import LOCKS_MS, Ago, Group, Member, Part, Place
from .real_machine import LIMIT_MS, RealMachine
from .states import TRANSACTED, State
from .truth import subscribes

TIMES = {
    120: Ago(
        committed=176_000,
        joined=173_000,
        base=165_000,
        fed=150_000,
        stuck=110_000,
        full=160_000,
        unrest=130_000,
        every=30_000,
        stays=12_000,
        later=0,
    ),
    20: Ago(
        committed=43_000,
        joined=41_000,
        base=33_000,
        fed=28_000,
        stuck=18_000,
        full=32_000,
        unrest=31_000,
        every=7_000,
        stays=3_000,
        later=0,
        control=9_000,
    ),
}
"""What happens when, by the longest `since` in seconds: nothing moves a real broker's time."""
CHANGED_MS = 4_000
SETTLED_MS = 2_000
"""The first records are written so long after all members have what there is."""
SETTLING_S = 240
LEFT_EPOCH = -2
CLASSIC_MEMBER = 0


def unplayable(state: State, release: str, longest: int) -> str:
    """Why a state cannot be played on a real broker; empty when it can."""
    since = int(state.since)
    dead = state.owner == "dead-static"
    reasons = {
        "nothing moves a real broker's time": since > longest,
        "a broker deletes what is beyond its retention when it likes": (
            state.retention == "past"
            or state.stamps == "backfill"
            or (state.retention, state.stamps) == ("near", "late")
        ),
        "the exam's real tool commits without a leader epoch": state.commits == "restored",
        "one broker: no other one leads with less of a log": state.log == "cut",
        "its producers begin no transaction again and again": state.log == "transactions",
        "one broker: none of three can be down": state.visibility in ("broker", *LAGGING),
        "a broker cleans the records of groups when it likes": state.visibility in CLEANED_MS,
        "the records of groups are a real broker's own": state.visibility == "scratched",
        "the exam's real clients do not go on again": state.healed != "no",
        "the exam's one real broker has one clock": state.clock == "apart",
        "nobody waits for commits so far apart": state.delay == "rarely",
        "a real client takes all that has come": state.owner == "overloaded",
        "an offset with a former topic's id is left only by a coordinator that was down": (
            state.commits == "other-id"
        ),
        "the exam's real readers have no producers of their own": state.commits in TRANSACTED,
        "the exam's real readers commit what they read": state.repeats == "all",
        "a real member of a share group accepts all that comes at once": (
            state.protocol == "share" and (state.owner in ("releasing", "looping") or state.delay != "prompt")
        ),
        "without its dead member a group does not settle": (
            dead and state.membership in ("flapping", "rebalance", "stuck")
        ),
        "a member that has left for now is not asked to give anything up": (
            state.owner == "left" and state.membership in ("rebalance", "stuck")
        ),
        "Kafka refuses static members of streams groups until 4.4": (
            release < "4.4" and state.protocol == "streams" and state.owner in ("dead-static", "left")
        ),
    }
    return next((why for why, holds in reasons.items() if holds), "")


class RealGroup(Group):
    """One state on its way, with real clients: what they do, and what they own, is noted as it happens."""

    machine: RealMachine  # type: ignore[assignment]

    def __init__(self, machine: RealMachine, state: State, name: str, ago: Ago) -> None:
        self.ago = ago
        self.clients: dict[str, tuple[Driver, Member]] = {}
        self.frozen: set[str] = set()
        self.flying: set[Place] = set()
        self.seen: dict[str, tuple[int, frozenset[Place]]] = {}
        self.spoiled: list[str] = []
        self.present: set[str] = set()
        self.outsider: Consumer | None = None
        self.late: frozenset[str] = frozenset()
        """Whom a rebalance waits for, by the broker."""
        self._starts = count()
        super().__init__(machine, state, name)  # type: ignore[arg-type]
        self.lock_ms = LOCKS_MS["prompt"]  # the brokers' default

    def _at(self, ago_ms: float, act: Callable[[], None]) -> None:
        super()._at(ago_ms, lambda: self._tried(act))

    def _tried(self, act: Callable[[], None]) -> None:
        """Do it; where that fails, this state does not come about, and the others do."""
        try:
            act()
        except Exception as failure:
            self.spoiled.append(f"{type(failure).__name__}: {failure}"[:300])

    @property
    def real(self) -> bool:
        """Whether its members are real clients."""
        return self.state.protocol != "streams"

    # members

    def _join(self) -> None:
        if not self.real:
            super()._join()
            return
        if self.share:
            self.machine.configure_group(self.name, {"share.auto.offset.reset": "earliest"})
        for member in self.members:
            if self.share:
                self._open(member)
            elif self.mixed and member.classic != self.upgrades:
                # Whoever changes its protocol is restarted once all are there: while a group's first
                # generation forms, Kafka 4.3.1 answers one of the consumer protocol with an unknown error.
                self.machine.at(self.machine.now_ms + CHANGED_MS, partial(self._start, member))
            else:
                self._start(member)

    def _open(self, member: Member) -> None:
        """Start a member of a share group; it polls again and again, and accepts all that comes."""
        member.member_id = f"{self.name}-{member.name}"
        host = self.clients[member.member_id] = self.machine.java(), member
        where = {"bootstrap": self.machine.kafka.bootstrap, "group": self.name, "topics": member.topics}
        begun = host[0].begin("share.open", name=member.member_id, at_most=500, **where)

        def opened(done: Future[Any]) -> None:
            self._checked(done)
            self._poll(member)

        begun.add_done_callback(opened)

    def _poll(self, member: Member) -> None:
        """Poll a member once, and plan the next time."""
        if self.machine.now_ms >= min(member.stops_ms, NOW_MS):
            return

        def done(answer: Future[Any]) -> None:
            self._checked(answer)
            if answer.exception() is not None:
                return
            for topic, number, last in answer.result():
                part = self.parts[Place(topic, number)]
                self._committed(part, last + 1, member)
            self.machine.at(self.machine.now_ms + 1_000, lambda: self._poll(member))

        host, _ = self.clients[member.member_id]
        host.begin("share.read", name=member.member_id, ms=300).add_done_callback(done)

    def _start(self, member: Member, role: str | None = None) -> None:
        """Start a client; by its id the assignors of librdkafka put `a` before `b`."""
        name = f"{self.name}-{role or member.name}-{next(self._starts)}"
        doomed = self.state.owner == "dead-static" and member.instance is not None
        host = self.machine.host(f"doomed-{self.state.since}" if doomed else "")
        member.member_id = name
        self.clients[name] = host, member
        classic = {
            "session.timeout.ms": LIMIT_MS,
            "heartbeat.interval.ms": 3_000,
            "partition.assignment.strategy": "range",
        }
        config = {
            "poll_s": 0.6,
            "fetch.wait.max.ms": 10_000,
            "topic.metadata.refresh.interval.ms": self.by.choice([2_000, 300_000]),
            **(classic if member.classic else {"group.remote.assignor": "range"}),
        }
        begun = host.begin(
            "start",
            client="librdkafka",
            name=name,
            bootstrap=self.machine.kafka.bootstrap,
            group=self.name,
            instance=member.instance,
            topics=list(member.topics),
            pattern=f"^{member.regex}" if member.regex else None,
            protocol="classic" if member.classic else "consumer",
            assignor="range",
            session_ms=LIMIT_MS,
            config=config,
        )
        begun.add_done_callback(self._checked)

    def _checked(self, done: Future[Any]) -> None:
        if (failure := done.exception()) is not None and not self.machine.ended.is_set():
            self.spoiled.append(f"{failure}"[:200])

    def noted(self, name: str, row: Mapping[str, Any]) -> None:
        """Take from a client what it owns now."""
        _, member = self.clients[name]
        owned = frozenset(Place(*each) for each in row["assignment"]) & self.parts.keys()
        why = f"{name} ended: {row['fatal']}"
        lost = row["fatal"] and member.member_id == name and member in self.members
        if lost and why not in self.spoiled:
            self.spoiled.append(why)
        if self.seen.get(name) == (now := (row["rebalances"], owned)) or member.member_id != name:
            return
        if member.classic and row["rebalances"] != self.seen.get(name, (0, None))[0]:
            self.rebalances.append(self.machine.now_ms)
        self.seen[name] = now
        fresh = owned - member.owned
        self._owns(member, owned)
        for place in fresh:
            self._later(member, place)

    def _later(self, member: Member, place: Place) -> None:
        self.machine.at(self._due_ms(member, place), lambda: self._reads(member, place))

    @property
    def settled(self) -> bool:
        """Whether its members have what there is."""
        if not self.real or not self.members:
            return True
        if self.share and not any(m.owned for m in self.members):
            return False
        wanted = {p for p in self.parts if any(subscribes(self, m, p.topic) for m in self.members)}
        owned = [p for m in self.members for p in m.owned]
        if self.share:
            return set(owned) == wanted
        several = len({m.topics for m in self.members}) == 1 and len(wanted) >= len(self.members)
        return sorted(owned) == sorted(wanted) and (not several or all(m.owned for m in self.members))

    def _settle(self) -> None:
        """Members of streams groups beat until the broker has assigned, which takes it a moment."""
        if self.real:
            return
        super()._settle()
        self.machine.at(self.machine.now_ms + 500, lambda: self._tried(super(RealGroup, self)._settle))

    def _leave(self, member: Member, *, for_now: bool = False) -> None:
        if not self.real:
            super()._leave(member, for_now=for_now)
            return
        name = member.member_id
        host, _ = self.clients[name]
        if self.share:  # after the poll that may be under way
            close = partial(host.begin, "share.close", name=name)
            self.machine.at(self.machine.now_ms + 2_000, lambda: close().add_done_callback(self._checked))
        else:
            host.begin("close", name=name, leave=None).add_done_callback(self._checked)
        if for_now:
            member.left = True
            return
        member.owned, member.stops_ms = frozenset(), self.machine.now_ms
        self.members = [m for m in self.members if m is not member]

    def _stop(self) -> None:
        super()._stop()
        if not self.real:
            return
        for member in self.members if self.share else ():
            if self.subject in member.owned:
                member.stops_ms = self.machine.now_ms
        stopped = [m for m in self.members if m.stops_ms <= self.machine.now_ms]
        if self.state.owner == "dead-static":
            for member in self.members:
                if member.instance is not None:
                    member.stops_ms = self.machine.now_ms
                    self.frozen.add(member.member_id)
            self.machine.kill(f"doomed-{self.state.since}")
        elif not self.share and self.state.owner == "hung" and self.state.membership in ("stable", "full"):
            for member in stopped:
                self._freeze(member)

    def _freeze(self, member: Member) -> None:
        """Hang between two polls; its heartbeats go on."""
        if member.member_id not in self.frozen:
            self.frozen.add(member.member_id)
            host, _ = self.clients[member.member_id]
            host.begin("freeze", name=member.member_id, seconds=3_600)

    def _restart(self) -> None:
        if not self.real:
            super()._restart()
            return
        old = self.owner(self.subject)
        if old is None:
            return
        self._ends(old.owned)
        at = self.members.index(old)
        fresh = Member(old.name, old.topics, regex=old.regex, classic=old.classic)
        fresh.stops_ms = self.machine.now_ms
        self._leave(old)
        self.members.insert(at, fresh)
        self._start(fresh)

    def _taken_over(self) -> None:
        old = next(m for m in self.members if m.instance is not None)
        if not any(map(self._there, old.topics)):
            return  # a client joins no group while none of its topics exists
        self.taken_over += 1
        self._ends(old.owned)
        fresh = Member(old.name, old.topics, old.instance, old.regex, old.classic)
        fresh.owned, fresh.got_ms, fresh.stops_ms = old.owned, dict(old.got_ms), old.stops_ms
        self.members[self.members.index(old)] = fresh
        self._start(fresh)

    def _third(self) -> None:
        if not self.real:
            super()._third()
            return
        if self.state.membership in ("rebalance", "stuck"):
            # Who does not poll does not rejoin, and gives nothing up.
            for member in self.members:
                if member.classic or not self.mixed:
                    self._freeze(member)
            if not self.classic:
                # Where the third takes nothing from the others, they confirm its epoch without a poll.
                self._at(0.9 * self.ago.stuck, self._overdue)
        third = Member("c", (self.side,), classic=self.classic)
        self.members.append(third)
        self._start(third)

    @property
    def awaited(self) -> list[Member]:
        if not self.real:
            return super().awaited
        return [m for m in self.members if {m.instance, m.member_id} & self.late]

    def _overdue(self) -> None:
        asked = ConsumerGroupDescribeRequest(group_ids=(self.name,))
        (group,) = self.machine.ask(asked, ConsumerGroupDescribeResponse).groups
        self.overdue = is_moving(group)

    def _third_goes(self) -> None:
        if not self.real:
            super()._third_goes()
            return
        third = self.members[-1]
        self._ends(frozenset(place for place in self.parts if place.topic in third.topics))
        self._leave(self.members[-1])

    # records and commits

    def produce(self, place: Place, count: int = 1, kind: str = "data", producer: int | None = None) -> None:
        """Write records; those of a transaction count from when it is done, which takes a moment."""
        if kind == "data":
            super().produce(place, count)
            return

        def transaction() -> None:
            self.machine.transaction(place, count, kind, self.stamps_ms(place.topic))
            super(RealGroup, self).produce(place, count, kind)

        self.machine.do(lambda: self._tried(transaction))

    def _append(self, place: Place, count: int, kind: str, producer: int | None = None) -> None:
        if kind == "data":
            for number in range(self.parts[place].end, self.parts[place].end + count):
                self.machine.produce(place, 1, self.stamps_ms(place.topic, number))

    def _reads(self, member: Member, place: Place) -> None:
        hidden = self.share or member.member_id in self.frozen or place in self.flying
        poison = self.state.owner == "looping" and place == self.subject and self.ends
        if not hidden and not poison and self.machine.now_ms < NOW_MS:
            super()._reads(member, place)

    def commit(self, place: Place, offset: int, member: Member | None) -> None:
        part = self.parts[place]
        if member is None:
            self.machine.do(lambda: self._tried(partial(self._commit_outside, part, offset)))
            return
        if not self.real:
            super().commit(place, offset, member)
            return
        if place in self.flying or member.member_id in self.frozen:
            return
        host, _ = self.clients[member.member_id]
        if host.ended:
            return
        self.flying.add(place)

        def done(answer: Future[Any]) -> None:
            self.flying.discard(place)
            if answer.exception() is None:
                self._committed(part, offset, member)
            else:  # a rebalance came between, or the topic is gone
                self._later(member, place)

        host.begin("commit", name=member.member_id, offsets=[[*place, offset]]).add_done_callback(done)

    def _commit_outside(self, part: Part, offset: int) -> None:
        if self.state.subscription == "assign":
            if self.outsider is None:
                self.outsider = self.machine.assigned(self.name, list(self.parts))
            self.outsider.consume(100, 0)
            self.outsider.commit(offsets=[Offset(*part.place, offset)], asynchronous=False)
        else:
            self.machine.commit(self.name, part.place, offset)
        self._committed(part, offset, None)

    # what happens to the log

    def _compact(self) -> None:
        """Leave it to the cleaner, which comes all the while: `cleaned` sees what it left."""

    def _again(self) -> None:
        if not self.real:
            super()._again()
            return
        self.machine.create_topic(self.main, self.width)
        for number in range(self.width):
            place = Place(self.main, number)
            self.parts[place] = Part(place)
            self.produce(place, 5)

    # the look

    def reads(self, key: str, topics: Sequence[str]) -> None:
        """Take from a member what its client subscribes to: what matches, or exists, when it joins."""
        for member in self.members:
            if key in (member.instance, member.member_id):
                member.topics = tuple(topics)

    def observed(self, state: str, members: Mapping[str, frozenset[Place]], *, moving: bool) -> None:
        """Take from the broker who is in the group, and what each owns; the clients know it later."""
        self.moving = moving
        # A static member that another process takes over keeps the client id of the first.
        given = {
            m.member_id: members[key]
            for m in self.members
            for key in (m.instance, m.member_id)
            if key is not None and key in members
        }
        known = [m for m in self.members if m.member_id in given]
        lost = [m.name for m in self.members if m not in known]
        if lost and self.state.subscription != "pattern-of-nothing":
            self.spoiled.append(f"{lost} not in the group, which is {state}")
        if len(members) > len(known):
            self.spoiled.append(f"{len(members)} members, and not {len(known)}: one has not left yet")
        self.members = known
        if self.moving and self.classic:
            return
        for member in known:
            owned = given[member.member_id] & self.parts.keys()
            if owned != member.owned:
                self._owns(member, owned)


def cleaned(machine: RealMachine, groups: Sequence[RealGroup]) -> None:
    """Take from the compacted logs what their cleaner has left."""
    of = [group for group in groups if group.state.log == "compacted"]
    parts = [part for group in of for place, part in group.parts.items() if place.topic == group.main]
    before: dict[Place, list[int]] | None = None
    found: dict[Place, list[int]] = {}
    while before != found and parts:  # until it has done its work
        before, found = found, machine.read([part.place for part in parts])
        time.sleep(0.5)
    for part in parts:
        part.entries = [e for e in part.entries if e.offset in found[part.place]]


def observe(machine: RealMachine, groups: Sequence[RealGroup]) -> None:
    """Ask the broker about all groups of real clients."""
    by_name = {group.name: group for group in groups if group.real}
    newer = [name for name, group in by_name.items() if group.state.protocol in ("consumer", "mixed")]
    asked = ConsumerGroupDescribeRequest(group_ids=tuple(newer))
    described = machine.ask(asked, ConsumerGroupDescribeResponse).groups
    # A mixed group without members of the consumer protocol is a classic one.
    newer = [group.group_id for group in described if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND]
    classic = [name for name, group in by_name.items() if name not in newer and not group.share]
    for each in machine.ask(DescribeGroupsRequest(groups=tuple(classic)), DescribeGroupsResponse).groups:
        found = {}
        for member in each.members:
            owned = Assignment.decode(member.member_assignment).partitions if member.member_assignment else ()
            key = member.group_instance_id or member.client_id
            found[key] = frozenset(Place(*p) for p in owned)
            if member.member_metadata:
                by_name[each.group_id].reads(key, Subscription.decode(member.member_metadata).topics)
        at_rest = each.group_state in ("Stable", "Empty", "Dead")
        by_name[each.group_id].observed(each.group_state, found, moving=not at_rest)
    for group in (group for group in described if group.group_id in newer):
        there = {
            member.instance_id or member.client_id: frozenset(
                Place(topic.topic_name, number)
                for topic in member.assignment.topic_partitions
                for number in topic.partitions
            )
            for member in group.members
        }
        known = by_name[group.group_id]
        for one in group.members:
            if one.member_type == CLASSIC_MEMBER:
                known.reads(one.instance_id or one.client_id, one.subscribed_topic_names)
        # One that waits for others has confirmed the epoch.
        late = (one for one in late_in(group) if one.member_epoch != group.assignment_epoch)
        known.late = frozenset(one.instance_id or one.client_id for one in late)
        known.observed(group.group_state, there, moving=is_moving(group))


def is_moving(group: DescribedGroup) -> bool:
    """Whether a member has not confirmed its assignment; one that has left for now never does."""
    return group.group_state in ("Assigning", "Reconciling") and any(late_in(group))


def late_in(group: DescribedGroup) -> Iterator[DescribedMember]:
    """Yield the members that have not confirmed their assignment, but those that left for now."""
    for member in group.members:
        there = member.member_epoch == group.assignment_epoch
        behind = not there or member.assignment != member.target_assignment
        if behind and member.member_epoch != LEFT_EPOCH:
            yield member


def observe_share(machine: RealMachine, groups: Sequence[RealGroup]) -> None:
    """Ask the broker about share groups, in which several may read a partition."""
    by_name = {group.name: group for group in groups if group.share}
    asked = ShareGroupDescribeRequest(group_ids=tuple(by_name))
    for each in machine.ask(asked, ShareGroupDescribeResponse).groups:
        group = by_name[each.group_id]
        group.present = {member.client_id for member in each.members}
        for member in each.members:
            if (known := group.clients.get(member.client_id)) is not None:
                rows = member.assignment.topic_partitions
                owned = frozenset(Place(t.topic_name, n) for t in rows for n in t.partitions)
                group._owns(known[1], owned & group.parts.keys())


def played_really(
    machine: RealMachine, states: Sequence[State], ago: Ago, note: Callable[[str], object]
) -> list[RealGroup]:
    """The groups of these states on a real Kafka, when their time has come."""
    machine.looks_at_ms = time.time() * 1000 + 2 * ago.committed
    groups = [RealGroup(machine, state, f"{PREFIX}{number:04d}", ago) for number, state in enumerate(states)]
    note(f"{len(groups)} groups, topics to be made")
    machine.make_topics()
    watching = threading.Thread(target=_watch, args=(machine, groups), daemon=True)
    watching.start()
    machine.looks_at_ms = time.time() * 1000 + ago.committed + 500
    settled = ago.base + SETTLED_MS
    machine.run(NOW_MS - settled)
    began = time.monotonic()
    while not all(group.settled for group in groups) and time.monotonic() - began < SETTLING_S:
        time.sleep(0.5)
        observe_share(machine, groups)
    for group in groups:
        if not group.settled:
            owned = [[f"{p.topic[6:]}-{p.partition}" for p in sorted(m.owned)] for m in group.members]
            group.spoiled.append(f"did not settle: {owned}")
    machine.looks_at_ms = time.time() * 1000 + settled
    note(f"settled after {time.monotonic() - began:.0f} s more")
    machine.run(NOW_MS)
    machine.rest()
    cleaned(machine, groups)
    observe_share(machine, groups)
    for group in groups:
        if group.share and group.present != {member.member_id for member in group.members}:
            group.spoiled.append(f"in the group are {sorted(group.present)}")
    observe(machine, groups)
    return groups


def _watch(machine: RealMachine, groups: Sequence[RealGroup]) -> None:
    """Ask the clients all the while what they own."""
    by_name = {group.name: group for group in groups}
    while not machine.ended.is_set() and machine.now_ms < NOW_MS:
        for name, row in machine.states().items():
            by_name[name.partition("-")[0]].noted(name, row)
        time.sleep(0.5)
