"""A state, played on the machine by the requests that real clients send; what happened is kept as facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from kgroup.coordinator.outcome import Outcome, Record
from kgroup.domain import TopicPartition, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import Batch, LogRecord, end_marker_record
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue
from kgroup.protocol.messages import consumer_group_heartbeat as cgh
from kgroup.protocol.messages import streams_group_describe as sgd
from kgroup.protocol.messages import streams_group_heartbeat as sgh
from kgroup.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kgroup.protocol.streams_records import Subtopology, TopicInfo
from kgroup.protocol.subscription import Assignment, Subscription

from .machine import (
    HOUR_MS,
    LONG_MS,
    NOW_MS,
    OFFSETS_PARTITIONS,
    OPEN_PARTITION,
    Machine,
    Slot,
    clean,
    group_name,
)
from .sharing import ACCEPT, ALL, ONE, RELEASE, RENEW, Acquired, Back, ShareMember
from .states import HEALED_OWNERS, TRANSACTED, State

POLL_MS = 300_000
EAGER, COOPERATIVE = "range", "cooperative-sticky"
BASE = 20
DELAY_MS = {"prompt": 300, "lazy": 20_000, "interval": 300, "rarely": 300}
INTERVAL_MS = 60_000
"""How long the transactions of a topic take in which all is written."""
INTERVALS_MS = {"interval": INTERVAL_MS, "rarely": 400_000}
"""How often a member commits that does so at intervals: all that it has read."""
STRAY = BASE - 1
STAMPS_MS = {
    "stray": 3_000_000,
    "right": 0,
    "late": -600_000,
    "backfill": -30 * 24 * HOUR_MS,
    "ahead": 420_000,
}
TAKES_MS = {"prompt": 0, "lazy": 20_000, "interval": 60_000, "rarely": 200_000}
"""How long a member of a share group takes for each record."""
LOCKS_MS = {"prompt": 30_000, "lazy": 30_000, "interval": 90_000, "rarely": 30_000}
"""How long it has a record; where that is shorter than what it takes, it renews the lock."""
LONG_LOCK_MS = 600_000
RENEWED_MS = 20_000
LIMIT = 5
"""How often a record is delivered."""
REJOINED_MS = 3_000
"""By then all members have what they read."""
REPEATED_MS = 5_000
"""How often a reader commits where it is, as Java's clients do by themselves."""
STAGGER_MS = 700
"""A reader commits one of its partitions after the other."""
Place = TopicPartition


@dataclass(frozen=True)
class Ago:
    """How long before the commands look what every state has happened, in milliseconds."""

    committed: int = 6_000_000
    """What a tool committed long before."""
    joined: int = 1_800_000
    base: int = 1_750_000
    """The first records."""
    fed: int = 300_000
    stuck: int = 200_000
    full: int = 600_000
    rebalance: int = 2_000
    unrest: int = 200_000
    every: int = 40_000
    """Members come and go four times, this far apart."""
    stays: int = 15_000
    later: int = 30_000
    """In every other state all of that happens so much later."""
    control: int = 30_000
    """The last records before only control records are left, so long before the rest goes wrong."""


LONG_AGO = Ago(committed=7_100_000, joined=6_000_000, base=5_950_000)
"""The same of what went wrong before the span of time that the doctor looks at."""


class Entry(NamedTuple):
    """An offset of a log: `data`, a `marker`, or one of an `aborted` or `open` transaction."""

    offset: int
    kind: str
    ms: int


class End(NamedTuple):
    """A member that went, and the partitions that it may have had until then."""

    ms: int
    places: frozenset[Place]
    got_ms: int
    """Since when it had them."""


class Commit(NamedTuple):
    offset: int
    ms: int
    written_ms: int
    """When the newest record that it covers was written."""
    member: bool


@dataclass
class Part:
    """What is true of one partition."""

    place: Place
    entries: list[Entry] = field(default_factory=list)
    start: int = 0
    end: int = 0
    exists: bool = True
    rebuilt: bool = False
    uncommitted: bool = False
    """Whether who reads it takes the records of transactions that are open or aborted, too."""
    epoch: int = -1
    """The leader epoch of what is committed."""
    cut_ms: int | None = None
    """When its log was cut before what was committed."""
    damaged: range = range(0)
    """The offsets of a batch that fails its checksum: who reads verifies it, and does not get beyond it."""
    commits: list[Commit] = field(default_factory=list)
    """What was committed; of a share group, up to where all was accepted or given up."""
    back: list[Back] = field(default_factory=list)
    """The records of a share group that came back, or were given up."""
    given_up: int = 0
    """Up to where they were."""
    held_ms: int | None = None
    """Since when a transaction that has not ended holds its committed offset open."""

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min(
            (e.offset for e in self.entries if e.kind == "open" and e.offset >= self.start), default=self.end
        )

    @property
    def committed(self) -> int | None:
        return max(self.commits[-1].offset, self.given_up) if self.commits else self.given_up or None

    def reached(self, offset: int) -> list[Entry]:
        """What a reader gets from this offset on until it stops at a damaged batch."""
        until = self.damaged.start if offset < self.damaged.stop else self.end
        return [e for e in (self._all if self.uncommitted else self.readable)(offset) if e.offset < until]

    def _all(self, offset: int) -> list[Entry]:
        first = max(offset, self.start)
        return [e for e in self.entries if e.offset >= first and e.kind in ("data", "open")]

    @property
    def lost(self) -> bool:
        """Whether its log was cut before what is committed."""
        return self.cut_ms is not None and self.commits[-1].ms < self.cut_ms

    def readable(self, offset: int) -> list[Entry]:
        """What a reader of committed records gets from this offset on."""
        first, stable = max(offset, self.start), self.stable
        if first > stable:
            return self._all(first)  # who committed that reads uncommitted records, or skipped them
        return [e for e in self.entries if first <= e.offset < stable and e.kind == "data"]


@dataclass
class Member:
    name: str
    topics: tuple[str, ...]
    instance: str | None = None
    regex: str | None = None
    classic: bool = False
    """Whether it speaks the classic protocol, in whatever group."""
    deaf: bool = False
    """Whether it does not rejoin when it is told to."""
    member_id: str = ""
    epoch: int = -1
    owned: frozenset[Place] = frozenset()
    told: frozenset[Place] | None = None
    """What the coordinator of a consumer group gave it while it hung: it goes by that later."""
    got_ms: dict[Place, int] = field(default_factory=dict)
    left: bool = False
    sharing: ShareMember | None = None
    has: dict[Place, Acquired] = field(default_factory=dict)
    """What a member of a share group has acquired."""
    stops_ms: int = NOW_MS + HOUR_MS
    """From when on it commits nothing any more."""


class Group:
    """One state on its way: members, partitions, and what they do."""

    ago = Ago()

    def __init__(self, machine: Machine, state: State, name: str) -> None:
        self.machine, self.state, self.name = machine, state, name
        if int(state.since) * 1000 > self.ago.joined:
            self.ago = LONG_AGO
        self.by = Random(state.seed)
        self.main, self.side = f"{name}-main", f"{name}-side"
        self.parts: dict[Place, Part] = {}
        self.members: list[Member] = []
        self.rolls = False
        """Whether members of a classic group are replaced by ones of the consumer protocol."""
        self.rebalances: list[int] = []
        self.moving = False
        self.waits_for_still = False
        """Whether a rebalance goes on, or may, only because a member that died or hangs confirms nothing."""
        self.overdue = True
        """Whether a rebalance that has not ended has begun long ago, when the third member came."""
        self.outside_ms: list[int] = []
        self.filled_ms = 0
        """When a share group had its first member after it had none."""
        self.ends: list[End] = []
        self.taken_over = 0
        """How often a process took an instance id over."""
        self.hot_ms = NOW_MS
        self.look_ms = NOW_MS
        self.retention_ms = {"week": 7 * 24 * HOUR_MS, "near": self.ago.base * 11 // 10, "past": 300_000}[
            state.retention
        ]
        kept = {"retention_ms": str(self.retention_ms)}
        compacts = {"cleanup_policy": "compact"} if state.log == "compacted" else {}
        self.width = {"two": 2, "nine": 9}[state.width]
        self._make(self.main, self.width, kept | compacts)
        self._make(self.side, 1, kept)
        if self.keeps_state:
            machine.create_topic(self.changelog, self.width, cleanup_policy="compact")
        self.delay_ms = DELAY_MS[state.delay]
        self.period_ms = self.by.choice([5_000, 10_000, 30_000])
        self.takes_ms = TAKES_MS[state.delay]
        self.lock_ms = LOCKS_MS[state.delay] if state.seed % 3 else LOCKS_MS["prompt"]
        if self.share:
            self.delay_ms = DELAY_MS["prompt"]
            self.period_ms = max(self.period_ms, self.takes_ms + 5_000)
            if state.seed % 5 == 1:
                self.lock_ms = LONG_LOCK_MS
        self.phase_ms = self.by.choice([100, 1_000, 3_000])
        self.since_ms = int(state.since) * 1000
        self.subject = Place(self.main, 0)
        if state.subscription == "other-topic":
            # What a tool committed long before; nobody reads it.
            self._at(self.ago.committed, lambda: self.commit(self.subject, 0, None))
        if state.subscription != "assign":
            self.members = self._cast()
            self._at(self.ago.joined, self._join)
        self._plan()

    def _at(self, ago_ms: float, act: Callable[[], None]) -> None:
        self.machine.at(NOW_MS - int(ago_ms), act)

    def _make(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        self.machine.create_topic(topic, partitions, **config)
        for number in range(partitions):
            place = Place(topic, number)
            self.parts[place] = Part(place)

    def _cast(self) -> list[Member]:
        """The members: the first owns the subject."""
        state = self.state
        both = (self.main, self.side)
        static = state.owner in ("dead-static", "left") or state.membership == "shared-id"
        instance = f"{self.name}-a" if static else None
        first = Member("a", both, instance)
        members = [first] if state.others == "alone" else [first, Member("b", both)]
        if len(members) > 1 and state.crew == "six":
            members += [Member(name, both) for name in "defg"]
        if state.subscription == "two-applications":
            for member in members:
                member.topics = (self.main,)
            members[1].topics = (self.side,)
        for number, member in enumerate(members):
            member.classic = state.protocol == "classic"
            if self.mixed:
                member.classic = state.first_is_classic == (number == 0)
            if state.subscription == "other-topic":
                member.topics = (self.side,)
            if state.subscription == "pattern-of-nothing":
                member.topics, member.regex = (), f"{self.name}-no-such.*"
            elif state.subscription == "pattern":
                member.regex = f"{self.name}-.*"
        return members

    # members

    @property
    def mixed(self) -> bool:
        return self.rolls or self.state.protocol == "mixed"

    @property
    def classic(self) -> bool:
        """Whether it is a classic group: a mixed one is where only its classic members are left."""
        left = bool(self.members) and all(m.classic for m in self.members)
        return left if self.mixed else self.state.protocol == "classic"

    @property
    def share(self) -> bool:
        return self.state.protocol == "share"

    @property
    def keeps_state(self) -> bool:
        """Whether its members restore what they kept before they read."""
        return self.state.protocol == "streams" and self.state.seed % 2 == 1

    @property
    def changelog(self) -> str:
        return f"{self.name}-counts-changelog"

    def owner(self, place: Place) -> Member | None:
        return next((m for m in self.members if place in m.owned), None)

    def _join(self) -> None:
        if self.mixed:
            self._join_before(changed=next(m for m in self.members if m.classic != self.upgrades))
        elif self.classic:
            self._join_classic(self.members)
        elif self.share:
            self._join_share()
        else:
            self._join_consumer()

    @property
    def assignor(self) -> str:
        """What the members of the classic protocol list."""
        if self.state.client in ("librdkafka", "user-data"):
            return COOPERATIVE
        if self.state.client == "own-assignor":
            return "its-own"
        half_way = self.state.protocol == "mixed"
        return COOPERATIVE if half_way and self.state.seed // 8 % 2 else EAGER

    @property
    def protocol_type(self) -> str:
        return "other" if self.state.client == "other-type" else "consumer"

    def _subscription(self, member: Member) -> bytes:
        if self.state.client == "undecodable" and member.name == self.members[-1].name:
            return b"\x00\x01\x7f"
        # In a mixed group range is eager: its members give up all that they have, to join.
        eager = self.mixed and self.assignor != COOPERATIVE
        owned = () if eager else tuple(sorted(member.owned))
        if self.state.client == "librdkafka":
            return Subscription(member.topics, b"", owned=owned).encode(3)
        return Subscription(member.topics, owned=owned).encode(1)

    def _user_data(self, members: Sequence[Member]) -> bytes | None:
        """What the leader adds to each assignment: librdkafka from what members owned before."""
        adds = self.state.client == "librdkafka" and any(member.owned for member in members)
        return b"positions" if adds or self.state.client == "user-data" else None

    @property
    def upgrades(self) -> bool:
        """Whether the members of a mixed group are to speak the consumer protocol in the end."""
        return self.state.seed // 4 % 2 == 0

    def _join_before(self, changed: Member) -> None:
        """All speak one protocol, and then one of them is restarted with the other one."""
        changed.classic = self.upgrades
        if self.upgrades:
            self._join_classic(self.members)
        else:
            self._join_consumer()
        self.machine.at(self.machine.now_ms + 1_000, lambda: self._change(changed))

    def _change(self, member: Member) -> None:
        at = self.members.index(member)
        if member.instance is None:
            self._leave(member)
            self.members.insert(at, member)
        member.classic, member.member_id, member.owned = not member.classic, "", frozenset()
        self._joins(member)
        self._settle()
        self._swap()

    def _joins(self, member: Member) -> None:
        """A new process joins a group of the newer protocols."""
        if not member.classic:
            member.member_id = f"{self.name}-{self.machine.now_ms % 10**9:022d}"[-22:]
        member.epoch = 0
        self._beat(member, first=True)

    def _join_share(self) -> None:
        lock = {"share.record.lock.duration.ms": str(self.lock_ms)}
        self.machine.configure_group(self.name, {"share.auto.offset.reset": "earliest"} | lock)
        for number, member in enumerate(self.members):
            self._joins_share(member, number)
        self.filled_ms = self.machine.now_ms
        self.machine.at(self.machine.now_ms + 2_000, self._share_settles)

    def _joins_share(self, member: Member, number: int) -> None:
        member.member_id = f"{self.name}-{number:022d}"[-22:]
        member.sharing = ShareMember(self.machine, self.name, member.member_id, member.topics)
        member.sharing.beat()

    def _share_settles(self) -> None:
        for member in self.members:
            assert member.sharing is not None
            member.sharing.beat()
            # Several read a partition; one of them does it here.
            taken = frozenset().union(*(m.owned for m in self.members))
            self._owns(member, frozenset(p for p in self.parts if p.topic in member.topics) - taken)

    def _handle(self, member: Member, place: Place) -> None:
        """Accept what there is at once, or acquire a record and accept it when it is done, then the next."""
        part, sharing, now = self.parts[place], member.sharing, self.machine.now_ms
        if sharing is None or place in member.has or not part.exists or now >= member.stops_ms:
            return
        if place == self.subject and self.state.owner == "releasing" and self._is_wrong:
            return
        got = sharing.take(place, ONE if self.takes_ms else ALL)
        if not got:
            return
        if not self.takes_ms:
            self._finish(member, place, got)
            return
        member.has[place] = got
        if self.lock_ms < self.takes_ms:
            for renewed_ms in range(now + RENEWED_MS, now + self.takes_ms, RENEWED_MS):
                self.machine.at(renewed_ms, lambda: self._renew(member, place, got))
        self.machine.at(now + self.takes_ms, lambda: self._finish(member, place, got))

    def _renew(self, member: Member, place: Place, got: Acquired) -> None:
        if self.machine.now_ms < member.stops_ms and member.sharing is not None:
            member.sharing.say(place, got, RENEW)

    def _finish(self, member: Member, place: Place, got: Acquired) -> None:
        if self.machine.now_ms >= member.stops_ms or member.sharing is None:
            return
        member.has.pop(place, None)
        member.sharing.say(place, got, ACCEPT)
        last = max(each.last_offset for each in got)
        self._committed(self.parts[place], last + 1, member)
        self._skip_given_up(self.parts[place])
        self._handle(member, place)

    def _fails_to_finish(self, release: bool, every_ms: int) -> None:
        """Acquire what there is of the subject, and release it, or leave it to its locks."""
        member = self.owner(self.subject)
        if member is None or member.sharing is None or self.machine.now_ms >= NOW_MS:
            return
        got = member.sharing.take(self.subject)
        if release and got:
            self.machine.at(self.machine.now_ms + 500, lambda: self._release(member, got))
        elif got:
            after_ms = self.machine.now_ms + self.lock_ms
            self.machine.at(after_ms, lambda: self._come_back(self.subject, got))
        self.machine.at(self.machine.now_ms + every_ms, lambda: self._fails_to_finish(release, every_ms))

    def _release(self, member: Member, got: Acquired) -> None:
        if member.sharing is not None:
            member.sharing.say(self.subject, got, RELEASE)
            self._come_back(self.subject, got)

    def _come_back(self, place: Place, got: Acquired) -> None:
        part = self.parts[place]
        for each in got:
            offsets = range(each.first_offset, each.last_offset + 1)
            part.back += [Back(offset, self.machine.now_ms, each.delivery_count) for offset in offsets]
        self._skip_given_up(part)

    def _skip_given_up(self, part: Part) -> None:
        done = {back.offset for back in part.back if back.deliveries >= LIMIT}
        to = part.committed or part.start
        while to in done:
            to = part.given_up = to + 1

    def _closes(self, member: Member) -> None:
        """A member of a share group ends, and what it has comes back."""
        if member.sharing is not None:
            member.sharing.close()
            for place, got in member.has.items():
                self._come_back(place, got)
            member.has.clear()
            member.stops_ms = min(member.stops_ms, self.machine.now_ms)

    def _restart_share(self, old: Member) -> None:
        """Another process takes the place of one that failed on what it had acquired."""
        fresh = Member(old.name, old.topics)
        at, owned = self.members.index(old), old.owned
        self._leave(old)
        if not self.members:
            self.filled_ms = self.machine.now_ms
        self.members.insert(at, fresh)
        self._joins_share(fresh, self.machine.now_ms % 10**9)
        self._owns(fresh, owned)
        assert fresh.sharing is not None
        fresh.stops_ms = self.machine.now_ms
        if got := fresh.sharing.take(self.subject):
            fresh.has[self.subject] = got
            self.machine.at(self.machine.now_ms + self.lock_ms, lambda: self._locks_end(fresh))

    def _locks_end(self, member: Member) -> None:
        if got := member.has.pop(self.subject, ()):
            self._come_back(self.subject, got)

    def _join_classic(self, members: Sequence[Member]) -> None:
        slots = [(member, self._send_join(member)) for member in members]
        self.machine.at(self.machine.now_ms + 200, lambda: self._sync(slots))

    def _send_join(self, member: Member) -> Slot:
        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=POLL_MS,
            member_id=member.member_id,
            group_instance_id=member.instance,
            protocol_type=self.protocol_type,
            protocols=(JoinGroupRequestProtocol(name=self.assignor, metadata=self._subscription(member)),),
        )
        slot = self.machine.begin(request, who=f"{self.name}-{member.name}")
        answer = slot.answer
        if isinstance(answer, JoinGroupResponse) and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = answer.member_id
            return self._send_join(member)
        return slot

    def _sync(self, slots: Sequence[tuple[Member, Slot]]) -> None:
        joined = [(member, slot.of(JoinGroupResponse)) for member, slot in slots]
        plan = self._plan_of_leader([member for member, _ in joined])
        data = self._user_data([member for member, _ in joined])
        waiting: list[tuple[Member, Slot]] = []
        for member, answer in sorted(joined, key=lambda each: each[1].leader == each[1].member_id):
            assert answer.error_code == 0, answer
            member.member_id, member.epoch = answer.member_id, answer.generation_id
        for member, answer in sorted(joined, key=lambda each: each[1].leader == each[1].member_id):
            leads = answer.leader == answer.member_id
            given = tuple(
                SyncGroupRequestAssignment(
                    member_id=m.member_id, assignment=Assignment(tuple(sorted(plan[m.name])), data).encode(1)
                )
                for m, _ in joined
            )
            request = SyncGroupRequest(
                group_id=self.name,
                generation_id=answer.generation_id,
                member_id=answer.member_id,
                group_instance_id=member.instance,
                protocol_type=self.protocol_type,
                protocol_name=self.assignor,
                assignments=given if leads else (),
            )
            waiting.append((member, self.machine.begin(request, who=f"{self.name}-{member.name}")))
        for member, slot in waiting:
            assert slot.of(SyncGroupResponse).error_code == 0, slot.answer
            self._owns(member, plan[member.name])
        self.rebalances.append(self.machine.now_ms)

    def _plan_of_leader(self, members: Sequence[Member]) -> dict[str, frozenset[Place]]:
        """What the leader assigns: one member has the main topic, the other one the side."""
        known = [place for place in self.parts if place.partition < self.width]
        plan: dict[str, set[Place]] = {m.name: set() for m in members}
        for place in known:
            takers = [m for m in members if place.topic in m.topics]
            if takers:
                taker = takers[0] if place.topic == self.main else takers[-1]
                plan[taker.name].add(place)
        return {name: frozenset(places) for name, places in plan.items()}

    def _owns(self, member: Member, places: frozenset[Place]) -> None:
        for place in places:
            # Whoever speaks the classic protocol gets all anew with each join.
            if member.classic or place not in member.owned:
                member.got_ms[place] = self.machine.now_ms
        member.owned = places

    def _join_consumer(self) -> None:
        for number, member in enumerate(self.members):
            member.member_id = f"{self.name}-{number:022d}"[-22:]
            member.epoch = 0
            self._beat(member, first=True)
        self._settle()
        self._swap()

    def _swap(self) -> None:
        """Give the cast by what the coordinator assigned: the first is the one that owns the subject."""
        if (owner := self.owner(self.subject)) is not None:
            self.members.sort(key=lambda member: member is not owner)

    def _beats(self) -> None:
        for _ in range(4):
            for member in self.members:
                if not member.left and not self.dead(member):
                    self._beat(member)

    def _settle(self) -> None:
        if self.classic:  # all others have left it
            self.moving = self.waits_for_still = False
            self._join_classic(self.members)
            return
        if self.waits_for_still:
            self.members = self._left_in()
        self._beats()
        # What began before has ended with it, unless it waits for one that left for now, that hangs, or died.
        self.moving = (self.moving and any(member.left for member in self.members)) or self._waits_for_still()
        if self.waits_for_still and (self.mixed or self.state.others != "quiet"):
            # Else nobody sends a heartbeat any more, and the next epoch stays without an assignment.
            self.machine.at(self.machine.now_ms + POLL_MS + 1_000, self._hung_is_removed)
        self.rebalances.append(self.machine.now_ms)

    def dead(self, member: Member) -> bool:
        """Whether it sends no heartbeat any more, and its session goes on."""
        return self.state.owner == "dead-static" and self.machine.now_ms >= member.stops_ms

    def hangs(self, member: Member) -> bool:
        """Whether its heartbeats go on, and it takes and gives up nothing."""
        hung = self.state.owner == "hung" and self.state.protocol in ("consumer", "mixed")
        return member.deaf or (hung and self.machine.now_ms >= member.stops_ms)

    @property
    def awaited(self) -> list[Member]:
        """Whom a rebalance of a group of the newer protocols waits for: they are at an older epoch."""
        newest = max((member.epoch for member in self.members), default=0)
        return [member for member in self.members if member.epoch < newest and not member.left]

    def _hung_is_removed(self) -> None:
        """The coordinator removed whoever confirmed nothing for its rebalance timeout; the others go on."""
        if len(left := self._left_in()) < len(self.members):
            self.members = left
            self._settle()

    def _left_in(self) -> list[Member]:
        there = {member.member_id for member in self._described().members}
        # Where only classic members are left the group is a classic one, and not described as this kind.
        return [m for m in self.members if (m.member_id in there if there else m.classic)]

    def _waits_for_still(self) -> bool:
        """Whether a member that hangs or died has not what it shall have, by the coordinator."""
        still = {member.member_id for member in self.members if self.hangs(member) or self.dead(member)}
        self.waits_for_still = bool(still)
        if not still or self.classic:
            return False
        group = self._described()
        self.waits_for_still = group.group_state != "Stable"
        return any(m.member_id in still and m.assignment != m.target_assignment for m in group.members)

    def _described(self) -> DescribedGroup | sgd.DescribedGroup:
        if self.state.protocol == "streams":
            streams = sgd.StreamsGroupDescribeRequest(group_ids=(self.name,))
            return self.machine.ask(streams, sgd.StreamsGroupDescribeResponse).groups[0]
        asked = ConsumerGroupDescribeRequest(group_ids=(self.name,))
        return self.machine.ask(asked, ConsumerGroupDescribeResponse).groups[0]

    def _beat(self, member: Member, *, first: bool = False, epoch: int | None = None) -> None:
        if self.state.protocol == "streams":
            self._beat_streams(member, first=first, epoch=epoch)
            return
        if member.classic:
            self._beat_classic(member, first=first)
            return
        ids = {topic: self.machine.topic_id(topic) for topic in (self.main, self.side) if self._there(topic)}
        names = {topic_id: topic for topic, topic_id in ids.items()}
        owned = tuple(
            cgh.TopicPartitions(
                topic_id=ids[topic],
                partitions=tuple(p.partition for p in sorted(member.owned) if p.topic == topic),
            )
            for topic in ids
            if any(p.topic == topic for p in member.owned)
        )
        request = cgh.ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.member_id,
            member_epoch=member.epoch if epoch is None else epoch,
            instance_id=member.instance,
            rebalance_timeout_ms=POLL_MS if first else -1,
            subscribed_topic_names=(() if member.regex else member.topics) if first else None,
            subscribed_topic_regex=member.regex if first else None,
            topic_partitions=() if first else None if self.hangs(member) else owned,
        )
        answer = self.machine.ask(
            request, cgh.ConsumerGroupHeartbeatResponse, who=f"{self.name}-{member.name}"
        )
        assert answer.error_code == 0, answer
        if epoch is not None:
            return
        member.epoch = answer.member_epoch
        if answer.assignment is not None:
            member.told = frozenset(
                Place(names[each.topic_id], number)
                for each in answer.assignment.topic_partitions
                for number in each.partitions
                if each.topic_id in names
            )
        if member.told is not None and not self.hangs(member):
            self._owns(member, member.told)
            member.told = None

    def _beat_classic(self, member: Member, *, first: bool) -> None:
        """The same of a classic member: it rejoins when it is told to, unless it hangs."""
        who = f"{self.name}-{member.name}"
        if not first:
            beat = HeartbeatRequest(
                group_id=self.name,
                generation_id=member.epoch,
                member_id=member.member_id,
                group_instance_id=member.instance,
            )
            told = self.machine.ask(beat, HeartbeatResponse, who=who).error_code
            assert told in (0, ErrorCode.REBALANCE_IN_PROGRESS), told
            if not told or self.hangs(member):
                return
        joined = self._send_join(member).of(JoinGroupResponse)
        assert joined.error_code == 0, joined
        member.member_id, member.epoch = joined.member_id, joined.generation_id
        sync = SyncGroupRequest(
            group_id=self.name,
            generation_id=member.epoch,
            member_id=member.member_id,
            group_instance_id=member.instance,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
        )
        given = self.machine.ask(sync, SyncGroupResponse, who=who)
        assert given.error_code in (0, ErrorCode.REBALANCE_IN_PROGRESS), given
        if self.assignor != COOPERATIVE:
            self._owns(member, frozenset())
        if not given.error_code:
            self._owns(member, frozenset(Assignment.decode(given.assignment).partitions))

    def _beat_streams(self, member: Member, *, first: bool, epoch: int | None) -> None:
        """The same of a streams group: a subtopology reads each topic, and owned are its tasks."""
        topics = {"0": self.main, "1": self.side}
        tasks = tuple(
            sgh.TaskIds(
                subtopology_id=part,
                partitions=tuple(p.partition for p in sorted(member.owned) if p.topic == topic),
            )
            for part, topic in topics.items()
            if any(p.topic == topic for p in member.owned)
        )
        kept = {"0": (TopicInfo(name=self.changelog),)} if self.keeps_state else {}
        parts = tuple(
            Subtopology(subtopology_id=p, source_topics=(topic,), state_changelog_topics=kept.get(p, ()))
            for p, topic in topics.items()
        )
        request = sgh.StreamsGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.member_id,
            member_epoch=member.epoch if epoch is None else epoch,
            instance_id=member.instance,
            rebalance_timeout_ms=POLL_MS if first else -1,
            topology=sgh.Topology(epoch=0, subtopologies=parts) if first else None,
            process_id=f"{self.name}-{member.name}" if first else None,
            active_tasks=() if first else tasks,
            standby_tasks=(),
            warmup_tasks=(),
        )
        answer = self.machine.ask(
            request, sgh.StreamsGroupHeartbeatResponse, who=f"{self.name}-{member.name}"
        )
        assert answer.error_code == 0, answer
        if epoch is not None:
            return
        member.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            given = frozenset(
                Place(topics[t.subtopology_id], n) for t in answer.active_tasks for n in t.partitions
            )
            self._owns(member, given)

    def _there(self, topic: str) -> bool:
        return any(part.exists for place, part in self.parts.items() if place.topic == topic)

    def _leave(self, member: Member, *, for_now: bool = False) -> None:
        if member.classic:
            identity = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance)
            answer = self.machine.ask(
                LeaveGroupRequest(group_id=self.name, members=(identity,)), LeaveGroupResponse
            )
            assert answer.error_code == 0, answer
        elif member.sharing is not None:
            self._closes(member)
            member.sharing.beat(-1)
        else:
            self._beat(member, epoch=-2 if for_now else -1)
        if for_now:
            member.left = True
            return
        member.owned = frozenset()
        self.members = [m for m in self.members if m is not member]

    # records and commits

    def produce(self, place: Place, count: int = 1, kind: str = "data", producer: int | None = None) -> None:
        part, now = self.parts[place], self.machine.now_ms
        if not part.exists:
            return
        self._append(place, count, kind, producer)
        shown = "data" if kind == "transactional" else kind
        part.entries += [Entry(part.end + n, shown, now) for n in range(count)]
        part.end += count
        if kind in ("transactional", "aborted"):
            part.entries.append(Entry(part.end, "marker", now))
            part.end += 1
        if (owner := self.owner(place)) is not None:
            self._goes_on(owner, place)

    def _due_ms(self, member: Member, place: Place) -> int:
        """When a member commits a record that comes now."""
        due_ms = self.machine.now_ms + self._delay_of(place)
        if (every_ms := INTERVALS_MS.get(self.state.delay)) is None:
            return due_ms
        phase_ms = Random(f"{self.state.seed} {member.name}").randrange(every_ms)
        return due_ms + (phase_ms - due_ms) % every_ms

    def _delay_of(self, place: Place) -> int:
        return self.delay_ms + STAGGER_MS * place.partition

    def stamps_ms(self, topic: str, offset: int = 0) -> int:
        """How far the times of a topic's records are from when they came: of one topic, or of both.

        Among right ones one record is stamped in the future.
        """
        here = topic == self.main or self.state.seed % 2
        stray = self.state.stamps == "stray" and offset != STRAY
        return STAMPS_MS[self.state.stamps] if here and not stray else 0

    def _append(self, place: Place, count: int, kind: str, producer: int | None = None) -> None:
        log, now = self.machine.log(*place), self.machine.now_ms
        records = [LogRecord(f"k{n % 3}".encode(), b"v") for n in range(count)]
        if kind == "data":
            for number, record in enumerate(records, self.parts[place].end):
                log.append([record], timestamp_ms=now + self.stamps_ms(place.topic, number))
            return
        if producer is None:
            producer = self.machine.begun(place) if kind == "open" else 9_000
        log.append(
            records,
            timestamp_ms=now + self.stamps_ms(place.topic),
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        if kind != "open":
            log.append(
                [end_marker_record(kind == "transactional")],
                timestamp_ms=now,
                producer_id=producer,
                producer_epoch=0,
                transactional=True,
                control=True,
            )

    def _reads(self, member: Member, place: Place) -> None:
        """Commit what can be read, if the member still does."""
        part = self.parts[place]
        if member.sharing is not None:
            self._handle(member, place)
            return
        reads = member in self.members and place in member.owned and part.exists
        if not reads or self.machine.now_ms >= member.stops_ms:
            return
        if self.state.owner == "hot" and place.topic == self.main and self.machine.now_ms > self.hot_ms:
            return
        if place == self.subject and self.state.commits == "none":
            return
        if place == self.subject and self.state.commits == "old" and part.commits:
            return
        ripe = [
            e.offset + 1
            for e in part.reached(part.committed or part.start)
            if e.ms <= self.machine.now_ms - self._delay_of(place)
        ]
        if not ripe:
            return
        to = max(ripe)
        if self.state.owner == "slow" and place == self.subject and part.committed:
            to = min(part.committed + max((to - part.committed) // 2, 1), to)
        if (
            self.state.owner == "overloaded"
            and place == self.subject
            and self.machine.now_ms > NOW_MS - self.since_ms
        ):
            to = min((part.committed or 0) + 5, to)
        self.commit(place, to, member)

    def commit(self, place: Place, offset: int, member: Member | None) -> None:
        part = self.parts[place]
        reads = member is not None or self.state.subscription == "assign"
        if self.state.commits in TRANSACTED and reads:
            aborts = self.state.commits == "aborting" and place == self.subject and self._is_wrong
            if self.state.seed % 2:
                # It began with more records than it can commit.
                self._transacts(place, part.end, member, commit=False)
            if self._transacts(place, offset, member, commit=not aborts) and not aborts:
                self._committed(part, offset, member)
            return
        code = self._asks_to_commit(place, offset, member)
        if member is not None and code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            return  # it commits again with its next poll
        assert code == 0, code
        self._committed(part, offset, member)

    def _epoch(self, place: Place, offset: int) -> int:
        """The leader epoch of what is committed: who commits an offset again has read nothing since."""
        part = self.parts[place]
        if offset != part.committed:
            part.epoch = self.machine.epoch_of(place)
        return part.epoch

    def _asks_to_commit(self, place: Place, offset: int, member: Member | None) -> int:
        topic = OffsetCommitRequestTopic(
            name=place.topic,
            partitions=(
                OffsetCommitRequestPartition(
                    partition_index=place.partition,
                    committed_offset=offset,
                    committed_leader_epoch=self._epoch(place, offset),
                ),
            ),
        )
        request = OffsetCommitRequest(
            group_id=self.name,
            generation_id_or_member_epoch=-1 if member is None else member.epoch,
            member_id="" if member is None else member.member_id,
            group_instance_id=None if member is None else member.instance,
            topics=(topic,),
        )
        answer = self.machine.ask(request, OffsetCommitResponse, 9)
        return answer.topics[0].partitions[0].error_code

    def _repeats(self) -> None:
        """Who is alive commits where it is, got on or not: it reads no more, and nothing of that is true."""
        for member in self.members:
            for place in () if self.dead(member) or member.left else sorted(member.owned):
                part = self.parts[place]
                if part.commits and part.exists and not part.rebuilt:
                    self._asks_to_commit(place, part.commits[-1].offset, member)

    @property
    def _is_wrong(self) -> bool:
        return self.machine.now_ms >= NOW_MS - self.since_ms

    def _transacts(
        self, place: Place, offset: int, member: Member | None, *, commit: bool, ends: bool = True
    ) -> bool:
        """Whether its group took what a reader commits in a transaction of its own."""
        name = f"{self.name}-{'outside' if member is None else member.name}"
        who = ("", -1, None) if member is None else (member.member_id, member.epoch, member.instance)
        epoch = self._epoch(place, offset)
        code = self.machine.commit_in_transaction(name, self.name, who, place, offset, epoch)
        if ends or code:
            self.machine.end_transaction(name, commit=commit and not code)
        assert code in (0, ErrorCode.ILLEGAL_GENERATION), code
        return not code

    def _dies_in_transaction(self) -> None:
        """The subject's reader commits what it has read, and hangs before its transaction ends."""
        part, owner = self.parts[self.subject], self.owner(self.subject)
        read = part.reached(0)
        if owner is not None and part.exists and read:
            offset = read[-1].offset + 1
            if self._transacts(self.subject, offset, owner, commit=False, ends=False):
                part.held_ms = owner.stops_ms = self.machine.now_ms

    def _committed(self, part: Part, offset: int, member: Member | None) -> None:
        written = max((e.ms for e in part.entries if e.offset < offset), default=self.machine.now_ms)
        part.commits.append(Commit(offset, self.machine.now_ms, written, member is not None))
        part.rebuilt = False
        if member is None:
            self.outside_ms.append(self.machine.now_ms)

    # the plan

    def _plan(self) -> None:
        state = self.state
        for place in self.parts:
            if place != self.subject or not self.fresh:
                self._at(self.ago.base, lambda place=place: self.produce(place, BASE))  # type: ignore[misc]
        if state.others == "busy":
            for place in self.parts:
                if place != self.subject:
                    self._feed(place, self.fed_ms, 0)
        self._log()
        self._owner()
        if state.subscription == "assign":
            self._outsider(self.since_ms if state.owner == "hung" else 0)
        elif state.commits == "outside":
            # An administrator's change is one commit, a reader that is no member makes many.
            for number in range(4 if self.since_ms > 30_000 else 1):
                self._at(self.since_ms - 1 - 6_000 * number, self._one_outside)
        elif state.commits == "set-back":
            # Real members take a moment to leave.
            self._at(self.since_ms - 3_000, self._set_back)
        elif state.commits == "restored":
            self._at(self.since_ms - 3_000, self._restore)
        elif state.commits == "pending":
            self._at(self.since_ms + 10, self._dies_in_transaction)
        if state.commits == "other-id":
            # After a deletion, its offset is still there: the coordinator was down when it happened.
            gone = state.log == "deleted"
            self._at(self.since_ms + (-2_000 if gone else 200), self._with_other_id)
        if state.membership != "stable":
            self._unrest()
        if state.repeats == "all":
            every_ms = max(REPEATED_MS, self.since_ms // 50)
            for ago in range(self.fed_ms, 0, -every_ms):
                self._at(ago, self._repeats)
        self._second()
        if state.healed != "no":
            self._at(self.healed_ms - 170, self._heal)

    @property
    def healed_ms(self) -> int:
        """How long ago what went wrong ended; less than nothing where it has not."""
        return int(self.state.healed) * 1000 if self.state.healed != "no" else -1

    def _heal(self) -> None:
        """Whoever stopped goes on, or is back, and reads what has come."""
        if self.state.log == "open":
            self._commit_all(f"{self.subject.topic}-{self.subject.partition}")
        if self.state.owner not in HEALED_OWNERS:
            return
        back = not self.members
        if back:
            self.members = self._cast()
            self._join()
        for member in self.members:
            member.stops_ms = NOW_MS + HOUR_MS
            member.has.clear()
            if member.left:
                member.left, member.owned = False, frozenset()
                self._joins(member)
        if not (back or self.classic or self.share):
            self._settle()
        self.machine.at(self.machine.now_ms + REJOINED_MS, self._all_go_on)

    def _all_go_on(self) -> None:
        for member in self.members:
            for place in member.owned:
                self._goes_on(member, place)

    def _goes_on(self, member: Member, place: Place) -> None:
        self.machine.at(self._due_ms(member, place), lambda: self._reads(member, place))

    def _second(self) -> None:
        """What goes wrong with the other topic, before the subject's does or after."""
        since = min(self.since_ms * 2 if self.state.seed % 2 else self.since_ms // 2, self.ago.base - 100_000)
        other = Place(self.side, 0)
        match self.state.second:
            case "hung":
                self._at(since, lambda: self._stops_to_commit(other))
            case "open":
                self._at(since, lambda: self.produce(other, 5, "open"))
            case "trimmed":
                self._at(0, lambda: self._purge(other, 3))
            case "damaged":
                self._at(since, lambda: self._damage(other))

    def _stops_to_commit(self, place: Place) -> None:
        owner = self.owner(place)
        if owner is not None:
            owner.stops_ms = min(owner.stops_ms, self.machine.now_ms)

    @property
    def fed_ms(self) -> int:
        """How long ago records began to come: while all was well, too."""
        return max(self.ago.fed, self.since_ms + 60_000)

    @property
    def fresh(self) -> bool:
        """Whether the subject has its first records when something goes wrong: its owner commits none."""
        state = self.state
        kind = state.log, state.owner
        return state.commits == "none" and kind in (("growing", "live"), ("aborted", "looping"))

    def _feed(self, place: Place, begin_ms: int, end_ms: int, count: int = 1) -> None:
        for ago in range(begin_ms, end_ms, -self.period_ms):
            self._at(ago - self.period_ms + self.phase_ms, lambda: self.produce(place, count))

    def _log(self) -> None:
        """What happens to the subject's log."""
        subject, since = self.subject, self.since_ms
        many = 10 if self.state.owner in ("slow", "overloaded") else 1
        match self.state.log:
            case "growing" | "trimmed" | "emptied" | "grown" | "damaged" | "cut":
                self._feed(subject, self.since_ms if self.fresh else self.fed_ms, 0, many)
            case "transactions":
                for ago in range(self.fed_ms, 0, -INTERVAL_MS):
                    self._at(ago - self.phase_ms, self._transaction)
            case "uncommitted":
                self.parts[subject].uncommitted = True
                self._feed(subject, self.fed_ms, 0, many)
                self._at(since, lambda: self.produce(subject, 5, "open"))
            case "bursts":
                self._at(since + 1_000, lambda: self.produce(subject, 50))
            case "compacted":
                for ago in range(6):
                    self._at(since - ago, lambda: self.produce(subject, 10))
                self._at(since - 10, self._compact)
            case "control-only":
                self._at(since + self.ago.control, lambda: self.produce(subject, 5, "transactional"))
            case "open":
                self._at(since, lambda: self.produce(subject, 5, "open"))
            case "aborted":
                self._at(since, lambda: self.produce(subject, 5, "aborted"))
            case "deleted" | "recreated":
                self._at(since, self._delete)
        if self.state.log == "trimmed":
            self._at(0, lambda: self._purge(subject, 3))
        elif self.state.log == "emptied":
            self._at(0, lambda: self._purge(subject, None))
        elif self.state.log == "grown":
            self._at(since, self._grow)
        elif self.state.log == "damaged":
            self._at(since, lambda: self._damage(subject))
        elif self.state.log == "cut":
            self._at(since, lambda: self._cut(subject))

    def _transaction(self) -> None:
        """Write a record now and then in a transaction that is committed a minute later."""
        place, begun = self.subject, self.machine.now_ms
        name = f"{place.topic}-{begun}"
        producer = self.machine.begun(place, name)
        for after in range(0, INTERVAL_MS - 1_000, self.period_ms):
            self.machine.at(begun + after, lambda: self.produce(place, 1, "open", producer))
        self.machine.at(begun + INTERVAL_MS - 500, lambda: self._commit_all(name))

    def _commit_all(self, name: str) -> None:
        part = self.parts[self.subject]
        self.machine.end_transaction(name, commit=True)
        part.entries = [e._replace(kind="data") if e.kind == "open" else e for e in part.entries]
        part.entries.append(Entry(part.end, "marker", self.machine.now_ms))
        part.end += 1
        if (owner := self.owner(self.subject)) is not None:
            self._goes_on(owner, self.subject)

    def _damage(self, place: Place) -> None:
        """Write a record, and damage its batch before anybody reads it."""
        self.produce(place)
        part = self.parts[place]
        part.damaged = self.machine.damage(place, part.end - 1)

    def _cut(self, place: Place) -> None:
        """A leader takes over that lacks records that were committed; then more of them are written."""
        part = self.parts[place]
        if not part.committed:
            return
        part.end = self.machine.cut(place, part.committed)
        part.cut_ms = self.machine.now_ms
        part.entries = [entry for entry in part.entries if entry.offset < part.end]
        self.produce(place, 20)

    def _purge(self, place: Place, more: int | None) -> None:
        """Retention deletes beyond what is committed, or everything."""
        part = self.parts[place]
        if not part.exists:
            return
        to = part.end if more is None else min((part.committed or 0) + more, part.end)
        self.machine.delete_before(place, to)
        part.start = max(part.start, to)

    def _compact(self) -> None:
        """The cleaner leaves the newest record of each key, in all segments but that of the last batch."""
        part, log = self.parts[self.subject], self.machine.log(*self.subject)
        assert isinstance(log, MemoryLog)
        batches = [Batch(raw) for raw in log._batches]
        left = clean(log, batches, {batch.base_offset for batch in batches[:-1]})
        there = {record.offset for batch in left for record in batch.records}
        part.entries = [entry for entry in part.entries if entry.offset in there]

    def _grow(self) -> None:
        self.machine.add_partitions(self.main, self.width + 1)
        place = Place(self.main, self.width)
        self.parts[place] = Part(place)
        if not self.classic and self.members:
            self._settle()
        self.produce(place, 10)

    def _delete(self) -> None:
        self.machine.delete_topic(self.main)
        for place in self.parts:
            if place.topic == self.main:
                self.parts[place] = Part(place, exists=False)
        if self.state.log == "recreated":
            self.machine.at(self.machine.now_ms + 1_000, self._again)

    def _again(self) -> None:
        """Make the topic again; a reader with names goes on at its old position, in a log that is shorter."""
        self.machine.create_topic(self.main, self.width)
        for number in range(self.width):
            place = Place(self.main, number)
            self.parts[place] = Part(place)
            self.produce(place, 5)
        owner = self.owner(self.subject)
        if self.classic and owner is not None and self.machine.now_ms < owner.stops_ms:
            self.commit(self.subject, BASE, owner)
        elif not self.classic and self.members:
            for member in self.members:
                member.owned = frozenset(p for p in member.owned if p.topic != self.main)
            self._settle()
            # What a pattern matches is looked up every ten seconds at most.
            self.machine.at(self.machine.now_ms + 11_000, lambda: None if self.moving else self._settle())

    # owners

    def _owner(self) -> None:
        owner, since = self.state.owner, self.since_ms
        if not self.members:
            return
        if owner in ("dead-static", "left", "hung"):
            self._at(since, self._stop)
        elif owner == "releasing":
            releases = bool(self.state.seed % 2)
            every_ms = self.by.choice([2_000, 10_000]) if releases else self.lock_ms + 5_000
            self._at(since, lambda: self._fails_to_finish(releases, every_ms))
        elif owner == "hot":
            self.hot_ms = NOW_MS - since
            self._at(since, lambda: self.produce(self.subject, 5_000))
            for ago in range(since - 1_000, 0, -2_000):
                self._at(ago, self._hot)
        elif owner == "looping":
            # Of a share group by the seed so seldom that it may be a restart.
            every = since // 2 if self.share and self.state.seed % 2 else max(10_000, since // 8)
            for ago in range(since, max(2_000, self.healed_ms), -every):
                self._at(ago, self._restart)
            if (
                self.state.others == "alone"
                and self.state.healed == "no"
                and not (self.share and self.state.seed % 2)
            ):
                # Its supervisor waits longer and longer before it starts it again.
                self._at(1_500, self._fails)
        elif owner == "none":
            self._at(since + 5, self._all_leave)
            if self.state.crew == "six" and self.state.seed % 2:
                # One after the other, and the next one has what it had for a moment.
                for number in range(len(self.members) - 1):
                    self._at(since + 4_000 - number * 600, self._one_leaves)

    def _stop(self) -> None:
        member = self.owner(self.subject) or self.members[0]
        member.stops_ms = self.machine.now_ms
        if self.state.owner == "left":
            if member.instance is None:  # the coordinator gave the subject to the other one
                member = next(m for m in self.members if m.instance is not None)
                member.stops_ms = self.machine.now_ms
            self._leave(member, for_now=True)

    def _hot(self) -> None:
        """Read a little of very much."""
        part, member = self.parts[self.subject], self.owner(self.subject)
        if member is not None:
            self.commit(self.subject, (part.committed or 0) + 5, member)

    def _restart(self) -> None:
        """The subject's owner fails on a record, leaves, and is started again."""
        old = self.owner(self.subject)
        if old is None:
            return
        self._ends(old.owned)
        if self.share:
            self._restart_share(old)
            return
        at = self.members.index(old)
        fresh = Member(old.name, old.topics, regex=old.regex, classic=old.classic)
        fresh.stops_ms = self.machine.now_ms
        self._leave(old)
        self.members.insert(at, fresh)
        if self.classic:
            self._join_classic(self.members)
            return
        self._joins(fresh)
        self._settle()

    def _fails(self) -> None:
        old = self.owner(self.subject)
        if old is not None:
            self._ends(old.owned)
            self._leave(old)

    def _ends(self, places: frozenset[Place]) -> None:
        """A member goes, before it commits what waits in these partitions."""
        if places:
            got = (m.got_ms.get(place, 0) for m in self.members for place in places & m.owned)
            self.ends.append(End(self.machine.now_ms, places, max(got, default=self.machine.now_ms)))

    def _one_leaves(self) -> None:
        """It commits what it has read; the next one has had too little time to read anything."""
        if self.members:
            first = self.members[0]
            for place in first.owned:
                if first.got_ms[place] < self.machine.now_ms - STAGGER_MS:
                    self._reads(first, place)
            self._leave(first)
            if not self.share:
                self._settle()

    def _all_leave(self) -> None:
        for member in list(self.members):
            self._leave(member)

    # commits from elsewhere

    def _outsider(self, until_ms: int) -> None:
        """A consumer with assign() reads everything, and commits every five seconds."""

        def reads() -> None:
            for place, part in self.parts.items():
                if part.exists and part.reached(part.committed or 0):
                    self.commit(place, part.reached(0)[-1].offset + 1, None)

        for ago in range(self.ago.base - 5_000, until_ms, -5_000):
            if ago < self.fed_ms or ago > self.ago.base - 20_000:
                self._at(ago, reads)

    def _one_outside(self) -> None:
        part = self.parts[self.subject]
        if part.exists and not self.members:
            self.commit(self.subject, part.end, None)

    def _set_back(self) -> None:
        """A tool sets the offset back to half of what was read."""
        part = self.parts[self.subject]
        if part.commits and not self.members:
            self.commit(self.subject, part.commits[-1].offset // 2, None)

    def _restore(self) -> None:
        """A tool commits the offset again, with an epoch that its leader has not reached."""
        part = self.parts[self.subject]
        if part.commits and not self.members:
            part.epoch = self.machine.epoch_of(self.subject) + 7
            self.commit(self.subject, part.commits[-1].offset, None)

    def _with_other_id(self) -> None:
        """A commit of before the topic was made again, which the coordinator was down to see deleted."""
        part = self.parts[self.subject]
        if not part.commits and part.exists:
            return
        last = part.commits[-1] if part.commits else Commit(BASE, 0, 0, True)
        shard = self.machine.cluster.shards[offsets_partition_of(self.name, OFFSETS_PARTITIONS)]
        assert shard is not None
        key = OffsetCommitKey(group=self.name, topic=self.main, partition=0)
        value = OffsetCommitValue(
            offset=last.offset, commit_timestamp=self.machine.now_ms, topic_id=bytes(15) + b"\x07"
        )
        shard._settle(Outcome(records=[Record(key, value)]), self.machine.now_ms)
        part.commits.append(last._replace(ms=self.machine.now_ms))
        part.rebuilt = True

    # membership

    def _unrest(self) -> None:
        """Members that come and go, or a rebalance that goes on while the commands look."""
        membership = self.state.membership
        if membership in ("rebalance", "stuck", "full"):
            self._at(getattr(self.ago, membership), self._third)
            return
        first = self.ago.unrest - self.ago.later * (self.state.seed % 2)
        for ago in range(first, first - 4 * self.ago.every, -self.ago.every):
            if membership == "shared-id":
                self._at(ago, self._taken_over)
            else:
                self._at(ago, self._third)
                self._at(ago - self.ago.stays, self._third_goes)

    def _taken_over(self) -> None:
        """Another process joins with the instance id of the first member, which is fenced."""
        member = next(m for m in self.members if m.instance is not None)
        member.member_id = ""
        if self.mixed:
            self._beat_classic(member, first=True)
            self._settle()
        else:
            answer = self._send_join(member).of(JoinGroupResponse)
            assert answer.error_code == 0, answer
            member.member_id, member.epoch = answer.member_id, answer.generation_id
            self._owns(member, member.owned)
        self.taken_over += 1
        self._ends(member.owned)

    def _third(self) -> None:
        self.moving = self.state.membership in ("rebalance", "stuck")
        settles = not self.moving
        member = Member("c", (self.side,), classic=self.classic)
        if self.classic:
            slots = [(member, self._send_join(member))]
            self.members.append(member)
            if settles:
                slots += [(m, self._send_join(m)) for m in self.members[:-1]]
                self.machine.at(self.machine.now_ms + 200, lambda: self._sync(slots))
        else:
            self.members.append(member)
            self._joins(member)
            if self.mixed and not settles:
                # The others go on, and wait for the one of the classic protocol. If that is not eager, it
                # joins once, and not again when it has given up what it has to.
                for each in self.members:
                    if each.classic and self.assignor == COOPERATIVE and not self.dead(each):
                        self._beat(each)
                    each.deaf = each.classic
                self._beats()
                self.moving = bool(self.awaited)
            if settles:
                self._settle()

    def _third_goes(self) -> None:
        self._ends(self.members[-1].owned)
        self._leave(self.members[-1])
        if self.classic:
            slots = [(m, self._send_join(m)) for m in self.members]
            self.machine.at(self.machine.now_ms + 200, lambda: self._sync(slots))
        else:
            self._settle()


def played(machine: Machine, states: Sequence[State]) -> list[Group]:
    """The groups of these states, when their time has come."""
    groups = [
        Group(machine, state, group_name(number, OPEN_PARTITION if state.commits == "pending" else 0))
        for number, state in enumerate(states)
    ]
    machine.run()
    return groups
