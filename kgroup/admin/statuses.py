"""The status of a partition: one judgement, which every command reads (docs/findings.md).

`status_of` is pure and total: it asks the rules of `RULES` in order, and the first that holds names the
status. A rule that needs an unseen fact ends in `unknown`, which names the fact. So seeing less never turns a
status into another one, only into `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Final

from kgroup.domain import count_of, value
from kgroup.durations import utc

SUSPECT_MS = 30_000
"""An unread record that is younger is no sign of anything: readers poll, process and commit."""
PROMPT_MS = 15_000
"""The silence that is an error where others were served meanwhile."""
OPEN_MS = 15_000
"""The age from which a transaction counts as one that does not end."""
POLL_MS = 300_000
"""What a reader may take between two polls unless it says otherwise: the clients' default."""
TIMES = 10
"""How many of the group's usual delays a partition may wait before that is a suspicion."""
TWICE = 2
"""How many times as long as the group's commits of late a partition may wait."""
SPAN_MS = 3_600_000
"""So long before the newest commit of a group its others count."""
LONGEST_MS = TWICE * SPAN_MS
"""As long a partition may wait at most by the group's commits, whatever they are."""
LOOPS = 3
"""Generations without a commit of a partition that make a loop: each ended at the same record."""

OK, INFO, WARN, UNSEEN, ERROR = "ok", "info", "warn", "unknown", "error"
WEIGHTS = (OK, INFO, WARN, UNSEEN, ERROR)
Weight = Annotated[str, WEIGHTS]


class PartitionStatus(StrEnum):
    """The closed set of statuses."""

    GONE = "gone"
    UNLEADERED = "unleadered"
    RECREATED = "recreated"
    BEYOND_END = "beyond-end"
    PURGED = "purged"
    DAMAGED = "damaged"
    IDLE = "idle"
    HELD_BACK = "held-back"
    MOVING = "moving"
    UNSUBSCRIBED = "unsubscribed"
    UNREAD = "unread"
    ABSENT = "absent"
    NOT_BEGUN = "not-begun"
    STALLED = "stalled"
    FALLING_BEHIND = "falling-behind"
    READING = "reading"
    UNKNOWN = "unknown"


NOT_THE_SAME_TOPIC = (PartitionStatus.GONE, PartitionStatus.RECREATED)
"""The statuses of partitions whose committed offset is of a topic that is no more."""


LOOKS = HISTORY, SETTINGS, TRANSACTIONS, LAG, ASSIGNMENTS = (
    "history",
    "settings",
    "transactions",
    "lag",
    "assignments",
)
"""The looks that may be left out of a check-up: then nothing is reported about what they show."""


@value
class Unseen:
    """A look that failed: `code` is a Kafka error name, UNREACHABLE, or one word for the reason."""

    look: str
    code: str
    message: str


@value
class Owner:
    """A partition's reader: its name, whether it left for now, and how long it may take between two polls."""

    name: str
    left: bool = False
    poll_ms: int = POLL_MS


@value
class Progress:
    """What the log says about the reading of one partition. Times in ms by the coordinator's clock.

    `since_ms` is the last sign that it was read: its commit, or the time when its owner got it. `others_ms`
    is the newest commit of the group's other partitions, `owner_ms` of its owner's, this one included.
    `usual_ms` is how long the group takes from the arrival of a record to its commit. `generations` ended
    since its last commit while this record waited. `busy` names a partition of the same owner whose records
    are older and whose commits go on. `waits_ms` is how long the group's commits of late came after the one
    before and its first record, mostly. `lost` is why some of this may be missing: then it may be worse, and
    is not better. `restores` is that the owner may restore state instead of reading. Of a share group,
    records that are finished count as commits, `generations` are the deliveries of one record that ended
    otherwise since, and `lock_ms` is how long a member may have a record.
    """

    since_ms: int
    others_ms: int = -1
    owner_ms: int = -1
    usual_ms: int = 0
    generations: int = 0
    busy: str = ""
    waits_ms: int | Unseen = 0
    lost: Unseen | None = None
    restores: Unseen | None = None
    lock_ms: int | Unseen = 0


@value
class Epochs:
    """The leader epoch of a commit, that of the leader now (-1: not told), and where the former one ended.

    An epoch never goes back. A leader that lacks the newest records of the one before begins its epoch before
    their end (KIP-101, KIP-320).
    """

    committed: int = -1
    now: int = -1
    end: int | None = None

    @property
    def ahead(self) -> bool:
        """Whether the commit is of another log than this one."""
        return 0 <= self.now < self.committed

    def why(self, offset: int) -> str | None:
        """Return why what is at this offset is not what was committed, or None."""
        if self.ahead:
            other = f"{offset} is committed in leader epoch {self.committed}, and the leader's is {self.now}"
            return f"{other}: Java clients take that leader for an old one, and read nothing"
        if self.end is not None and self.end < offset:
            cut = f"a new leader cut the log at {self.end}, before the commit {offset}"
            return f"{cut}: what is there came since"
        return None


NO_EPOCHS: Final = Epochs()
Fact = bool | Unseen


@value
class PartitionFacts:
    """What is known about one partition of a group at one moment; each fact seen, or why not.

    `committed` None: nothing is committed. `readable` is whether anything can be read from the committed
    offset (or the log's start) to the last stable offset: no control record, no aborted or compacted one.
    `damaged` is the offset of a batch that fails its checksum, if a reader meets one before any record.
    `waited_ms` is the least age of the oldest such record, or of the oldest that came since the owner got a
    partition without a commit. `open_ms` is the age of the transaction at the last stable offset. `owner`
    None: no member reads it. `rebuilt`: the topic was created again after the commit. `settled`: nothing
    about the partition's owner is about to change. A look that is left out on purpose has the default, and
    nothing is said about what it shows.
    """

    end: int | Unseen
    exists: Fact = True
    rebuilt: Fact = False
    committed: int | Unseen | None = None
    epochs: Epochs | Unseen = NO_EPOCHS
    start: int | Unseen = 0
    stable: int | Unseen | None = None
    readable: Fact = True
    damaged: int | Unseen | None = None
    waited_ms: int | Unseen = 0
    open_ms: int | Unseen = 0
    settled: Fact = True
    subscribed: Fact = True
    members: int | Unseen = 1
    owner: Owner | Unseen | None = None
    shared: bool = False
    progress: Progress | Unseen | None = None
    now_ms: int = 0


@value
class Status:
    """A partition's status, how much it matters, and why in words.

    `unseen` is the look whose result decides, for `unknown`.
    """

    name: PartitionStatus
    weight: Weight
    why: str = ""
    unseen: Unseen | None = None

    @property
    def good(self) -> bool:
        """Whether all was read, or is being read."""
        return self.weight == OK


READ: Final = Status(PartitionStatus.IDLE, OK)
READING: Final = Status(PartitionStatus.READING, OK)


def status_of(facts: PartitionFacts) -> Status:
    """Return the one status of a partition, for every combination of facts, seen or not."""
    for rule in RULES:
        verdict = rule(facts)
        if isinstance(verdict, Status):
            return verdict
        if isinstance(verdict, Unseen):
            return unknown(verdict)
    return READING


def unknown(unseen: Unseen) -> Status:
    """Return the status of a partition about which something that decides was not seen."""
    return Status(PartitionStatus.UNKNOWN, UNSEEN, unseen.message, unseen)


Rule = Callable[[PartitionFacts], "Status | Unseen | None"]
"""A status if it holds, None if it does not, and what was not seen if that cannot be told."""


def _gone(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.exists, Unseen):
        return f.exists
    if not f.exists:
        return Status(PartitionStatus.GONE, WARN, "it does not exist")
    return None


def _unleadered(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.end, Unseen) and f.end.code in _NO_LEADER:
        return Status(PartitionStatus.UNLEADERED, UNSEEN, f.end.message, f.end)
    return f.end if isinstance(f.end, Unseen) else None


def _recreated(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.committed, Unseen):
        return f.committed
    if f.committed is None:
        return None
    if isinstance(f.epochs, Unseen):
        return f.epochs
    if f.epochs.ahead:
        return Status(PartitionStatus.RECREATED, ERROR, f.epochs.why(f.committed) or "")
    if not f.rebuilt:
        return None
    if isinstance(f.rebuilt, Unseen):
        return f.rebuilt
    why = f"{f.committed} was committed for a former topic of this name"
    return Status(PartitionStatus.RECREATED, ERROR, why)


def _beyond_end(f: PartitionFacts) -> Status | Unseen | None:
    committed, end = f.committed, f.end
    if isinstance(committed, int) and isinstance(end, int) and committed > end:
        why = f"{committed} is {committed - end} beyond the end {end}"
        return Status(PartitionStatus.BEYOND_END, ERROR, why)
    if isinstance(committed, int) and isinstance(f.epochs, Epochs) and (cut := f.epochs.why(committed)):
        return Status(PartitionStatus.BEYOND_END, ERROR, cut)
    return None


def _purged(f: PartitionFacts) -> Status | Unseen | None:
    if not isinstance(f.committed, int) or f.committed == f.end:
        return None
    if isinstance(f.start, Unseen):
        return f.start
    if f.start <= f.committed:
        return None
    what = f"{count_of(f.start - f.committed, 'record')}, from {f.committed} to {f.start}"
    if f.shared:
        return Status(PartitionStatus.PURGED, ERROR, f"at most {what}: deleted before they were finished")
    if f.readable is True or (f.owner is None and f.settled is True):
        return Status(PartitionStatus.PURGED, ERROR, f"{what}: deleted before they were committed as read")
    # While its group rebalances, who read it is not reported, and does not decide.
    for fact in (f.readable, f.settled, f.owner if f.settled else None):
        if isinstance(fact, Unseen):
            return fact
    # Its reader may have read them: it has no later record to commit.
    return Status(PartitionStatus.PURGED, WARN, f"{what}: deleted; whether they were read was not committed")


def _damaged(f: PartitionFacts) -> Status | Unseen | None:
    if f.damaged is None or f.committed == f.end:
        return None
    if isinstance(f.damaged, Unseen):
        return f.damaged
    why = f"the batch at offset {f.damaged} fails its checksum: readers that verify it stop there"
    return Status(PartitionStatus.DAMAGED, ERROR, why)


def _idle(f: PartitionFacts) -> Status | Unseen | None:
    if f.committed == f.end or (f.committed is None and f.start == f.end):
        return READ
    for fact in (f.start if f.committed is None else None, f.readable):
        if isinstance(fact, Unseen):
            return fact
    if f.readable:
        return None
    if isinstance(f.stable, Unseen):
        return f.stable
    if f.stable is not None and isinstance(f.end, int) and f.stable < f.end:
        return None
    return Status(PartitionStatus.IDLE, OK, "no record can be read from there on")


def _held_back(f: PartitionFacts) -> Status | Unseen | None:
    if f.readable or f.committed == f.end:
        return None
    if isinstance(f.open_ms, Unseen):
        return f.open_ms
    opened_ms = f.open_ms
    why = f"readers of committed records stop at {f.stable}, where a transaction is open"
    if opened_ms < OPEN_MS:
        return Status(PartitionStatus.HELD_BACK, INFO, why)

    def by(waits_ms: int) -> Status:
        weight = ERROR if opened_ms >= max(OPEN_MS, waits_ms) else INFO
        return Status(PartitionStatus.HELD_BACK, weight, why)

    progress = None if f.members == 0 else f.progress
    if isinstance(progress, Unseen):
        return progress
    found = by(0) if progress is None else _by_commits(progress, by)
    # Without members nobody's commits say how long records may wait.
    return f.members if isinstance(f.members, Unseen) and found != by(0) else found


def _by_commits(
    made: Progress, by: Callable[[int], Status | Unseen | None], longest_ms: int | None = None
) -> Status | Unseen | None:
    """Return what follows from how long records may wait by the commits of late, at most.

    That is LONGEST_MS unless given. Where they are not known it is what would follow from any.
    """
    most_ms = LONGEST_MS if longest_ms is None else longest_ms
    if not isinstance(made.waits_ms, Unseen):
        return by(min(TWICE * made.waits_ms, most_ms))
    short, long = by(0), by(most_ms)
    if isinstance(short, Status) and isinstance(long, Status):
        same = (short.name, short.weight) == (long.name, long.weight)
    else:
        same = short == long
    return short if same else made.waits_ms


def _moving(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.settled, Unseen):
        return f.settled
    return None if f.settled else Status(PartitionStatus.MOVING, INFO, "its group rebalances")


def _unowned(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.members, Unseen):
        return f.members
    if f.members == 0:
        return Status(PartitionStatus.UNREAD, WARN, "the group has no members")
    if f.shared or f.owner is not None:
        return f.owner if isinstance(f.owner, Unseen) else None
    if isinstance(f.subscribed, Unseen):
        return f.subscribed
    if f.subscribed:
        return Status(PartitionStatus.UNREAD, ERROR, "no member owns it")
    return Status(PartitionStatus.UNSUBSCRIBED, INFO, "no member subscribes to its topic")


def _absent(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.owner, Owner) and f.owner.left:
        return Status(PartitionStatus.ABSENT, WARN, f"{f.owner.name} left for now, and it waits for it")
    return None


def _not_begun(f: PartitionFacts) -> Status | Unseen | None:
    if f.committed is not None or not isinstance(f.owner, Owner):
        return None
    if isinstance(f.waited_ms, Unseen):
        return f.waited_ms
    owner, waited_ms, made = f.owner, f.waited_ms, f.progress
    why = f"{owner.name} has committed nothing yet: auto.offset.reset decides where it begins"
    if isinstance(made, Unseen):
        decides = waited_ms > min(SUSPECT_MS - 1, owner.poll_ms)
        return made if decides else Status(PartitionStatus.NOT_BEGUN, INFO, why)
    if made is None:
        return Status(PartitionStatus.NOT_BEGUN, ERROR if waited_ms > owner.poll_ms else INFO, why)
    began = max(made.since_ms, f.now_ms - waited_ms)

    def by(waits_ms: int) -> Status | Unseen:
        if waited_ms >= SUSPECT_MS and (ended := made.generations) >= LOOPS:
            fails = f"{count_of(ended, 'generation')} ended and committed nothing: {owner.name} fails on it"
            return Status(PartitionStatus.NOT_BEGUN, ERROR, fails)
        if waited_ms > max(owner.poll_ms, waits_ms):
            return made.restores or Status(PartitionStatus.NOT_BEGUN, ERROR, why)
        passed = made.owner_ms - began > max(PROMPT_MS, TIMES * made.usual_ms, waits_ms)
        if waited_ms >= SUSPECT_MS and passed and not made.busy:
            elsewhere = f"{owner.name} goes on elsewhere, and has committed nothing of this one"
            return made.restores or Status(PartitionStatus.NOT_BEGUN, ERROR, elsewhere)
        return made.lost or Status(PartitionStatus.NOT_BEGUN, INFO, why)

    return _by_commits(made, by)


def _stalled(f: PartitionFacts) -> Status | Unseen | None:
    if isinstance(f.waited_ms, Unseen):
        return f.waited_ms
    if f.waited_ms < PROMPT_MS or f.progress is None:
        return None
    if isinstance(f.progress, Unseen):
        return f.progress
    began = max(f.progress.since_ms, f.now_ms - f.waited_ms)
    return (_unfinished if f.shared else _uncommitted)(f, f.progress, began)


def _uncommitted(f: PartitionFacts, made: Progress, began: int) -> Status | Unseen | None:
    """Return whether the owner of a partition commits nothing of what waits there."""
    alone, others = f.now_ms - began, made.others_ms - began
    who = f.owner.name if isinstance(f.owner, Owner) else "its readers"
    poll_ms = f.owner.poll_ms if isinstance(f.owner, Owner) else POLL_MS
    if made.generations >= LOOPS:
        return Loop.of(made.generations, f"{who} fails on it")
    why = f"{who} has committed nothing of it"

    def by(waits_ms: int) -> Status | Unseen | None:
        usual, longest = max(TIMES * made.usual_ms, waits_ms), max(poll_ms, waits_ms)
        bound = max(SUSPECT_MS, usual)
        # It reads the other first only while it reads.
        if made.busy and f.now_ms - made.owner_ms <= bound:
            first = f"{who} reads {made.busy} first, where older records wait"
            return made.lost or Status(PartitionStatus.FALLING_BEHIND, WARN, first)
        silent = made.owner_ms <= began and alone > 2 * bound
        if alone > longest or others > min(max(PROMPT_MS, usual), longest) or silent:
            return made.restores or Status(PartitionStatus.STALLED, ERROR, why)
        if made.lost is not None:
            return made.lost
        if alone > bound:
            return made.restores or Status(PartitionStatus.STALLED, WARN, why)
        return None

    return _by_commits(made, by)


class Loop(Status):
    """The status of a partition at whose oldest record members ended again and again."""

    __slots__ = ()

    @classmethod
    def of(cls, generations: int, what: str) -> Loop:
        """Return that so many generations did, and what follows."""
        ended = f"{count_of(generations, 'generation')} ended at this record: {what}"
        return cls(PartitionStatus.STALLED, ERROR, ended)


def _unfinished(f: PartitionFacts, made: Progress, began: int) -> Status | Unseen | None:
    """Return whether members of a share group finish nothing of what waits (docs/decisions/0082)."""
    alone_ms = f.now_ms - began
    lock_ms, unlocked = (0, made.lock_ms) if isinstance(made.lock_ms, Unseen) else (made.lock_ms, None)
    if made.generations >= LOOPS and alone_ms >= PROMPT_MS:
        times = count_of(made.generations, "time")
        why = f"a record came back {times}, and its members have finished none since"
        return Status(PartitionStatus.STALLED, ERROR, why)
    why = f"its members have finished no record of it since {utc(began)}"

    def by(waits_ms: int) -> Status | Unseen | None:
        if alone_ms > max(POLL_MS, lock_ms, waits_ms):
            return unlocked or Status(PartitionStatus.STALLED, ERROR, why)
        if alone_ms > max(SUSPECT_MS, lock_ms, waits_ms):
            return unlocked or Status(PartitionStatus.STALLED, WARN, why)
        return None

    return _by_commits(made, by, TWICE * POLL_MS)


_NO_LEADER = frozenset(
    {"LEADER_NOT_AVAILABLE", "UNREACHABLE", "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR"}
)
RULES: Final[tuple[Rule, ...]] = (
    _gone,
    _unleadered,
    _recreated,
    _beyond_end,
    _purged,
    _damaged,
    _idle,
    _held_back,
    _moving,
    _unowned,
    _absent,
    _not_begun,
    _stalled,
)
"""The statuses in order: the first that holds counts; where none does, the partition is being read."""
