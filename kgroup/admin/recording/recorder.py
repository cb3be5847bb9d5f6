"""The recorder: polls the log, looks at the groups, stores both, and survives what may happen meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgroup.admin.discovery import ClusterView
from kgroup.admin.recording.causes import bad_of
from kgroup.admin.recording.growing_past import GrowingPast
from kgroup.admin.recording.incidents import BACK_MS, Incidents
from kgroup.admin.recording.lease import NotOurs
from kgroup.admin.recording.lines import OPEN, Began, Ended, Incident, Line, Looked, Removed
from kgroup.admin.recording.look import Find, Known, Look, Terms, after, ids_of, look
from kgroup.admin.recording.observed import Observed, newest_first
from kgroup.admin.recording.retention import remove_old
from kgroup.admin.recording.topic_log import TopicLog
from kgroup.admin.statuses import ERROR
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import KgroupError, StorageError
from kgroup.history.fold.events import Kind
from kgroup.history.sources.folders import Folder
from kgroup.version import __version__

TIDY_S, TIDY_SHARE = 60.0, 50
"""How often the limits of the recording are enforced, and how many times as long as that takes it pauses."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much to keep, how often to poll the log, and to store at a URL what was polled."""

    every_s: float = 1.0
    upload_s: float = 60.0
    keep_ms: int | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What the recorder knows now: for metrics and health, replaced as a whole after each step."""

    began_ms: int
    interval_ms: int
    looked: Look | None = None
    incidents: tuple[Incident, ...] = ()
    read_ms: int | None = None
    """When the log was last read to its end."""
    unread: KgroupError | None = None
    disk: str | None = None
    gaps: int = 0
    batches: int = 0
    rebalances: Mapping[str, int] = field(default_factory=dict)


class Recorder:
    """Records into a folder; `poll`, `look` and `tidy` are its steps, `run` takes them in turn.

    `note` gets sentences for a person, `changed` each change of an incident, once it is stored.
    """

    def __init__(
        self,
        cluster: ClusterView,
        folder: Folder,
        find: Find,
        terms: Terms,
        limits: Limits,
        *,
        severity: str = ERROR,
        note: Callable[[str], None] = lambda text: None,
        changed: Callable[[Incident], None] = lambda incident: None,
    ) -> None:
        self._cluster, self._folder, self._find = cluster, folder, find
        self._terms, self._limits, self._severity = terms, limits, severity
        self._note, self._changed = note, changed
        self._observed = Observed(folder)
        self._incidents, self._last_ms, cluster_id = resumed(folder)
        self._log = TopicLog(cluster, folder, limits.upload_s, self._lacks, cluster_id)
        self._past = GrowingPast(cluster)
        self._known: Known | None = None
        self._brokers: dict[int, str] = {}
        self._rebalances: dict[str, tuple[int, int]] = {}
        self._tidy_s = 0.0
        self._said: dict[str, str] = {}
        self._owed: list[Line] = []
        self._begun = False
        self.state = self._stated(State(self._now_ms(), terms.interval_ms))

    def run(self, stop: threading.Event, ends_s: float = float("inf")) -> None:
        """Record until `stop` is set, or until a moment of the cluster's clock."""
        clock, sleep = self._cluster.retry.clock, self._cluster.retry.sleep
        look_s = clock()
        while not stop.is_set() and clock() < ends_s:
            self.poll()
            if clock() >= look_s:
                look_s = max(look_s + self._terms.interval_ms / 1000, clock())
                self.look()
                self.tidy()
            if not stop.is_set():
                sleep(max(0.0, min(self._limits.every_s, look_s - clock(), ends_s - clock())))
        self.end()

    def poll(self) -> None:
        """Record what has arrived in the log."""
        try:
            self._log.poll()
            self._now_ms()
            self._pay()
        except StorageError as error:
            self._full(error)
        else:
            unread = self._log.unread
            self._say("log", None if unread is None else f"{OFFSETS_TOPIC} is not recorded: {unread.message}")
            if unread is None:
                failures = self._log.failures.items()
                self._say("parts", "; ".join(f"{name} was not read: {why}" for name, why in failures))
        self.state = self._stated(self.state)

    def _lacks(self, text: str) -> None:
        self.state = replace(self.state, gaps=self.state.gaps + 1)
        self._note(text)

    def look(self) -> None:
        """Look at the groups, and store what is different."""
        now = look(self._cluster, self._find, self._terms, self._past)
        if now.failed is None:
            self._log.check_cluster()
        self._log.refresh(ids_of(now.world))
        now = after(self.state.looked, replace(now, at_ms=self._now_ms()))
        self._brokers |= {broker.id: f"{broker.host}:{broker.port}" for broker in now.brokers}
        bad = bad_of(now, self._brokers, self._severity, self.state.looked)
        incidents, changes = self._incidents.after(now, bad)
        begin = self._observed.begin_at(now.at_ms)
        if begin or self._known is None:
            self._known = Known()
        unread = None if self._log.unread is None else self._log.unread.message
        try:
            self._store([*self._known.lines(now, self._terms, unread), *changes], begin=begin)
        except StorageError as error:
            # None of it is stored: the next look that can be stored is, in full.
            self._full(error)
            return
        self._count(now)
        self._incidents = incidents
        # The rows of all groups are most of what a look takes.
        self.state = self._stated(replace(self.state, looked=replace(now, facts={}), disk=None))
        self._say("disk", None)
        self._say("unseen", "; ".join(f"not all groups are seen: {error.message}" for error in now.unseen))
        self._say("cluster", f"nothing was seen: {now.failed.message}" if now.failed else None)
        for change in changes:
            self._note(f"{change.event} {change.severity}: {change.title}; caused by: {change.caused_by}")
            self._changed(change)

    def tidy(self) -> None:
        """Remove what is more than may be kept."""
        keep_ms, most_bytes = self._limits.keep_ms, self._limits.most_bytes
        clock = self._cluster.retry.clock
        began_s = clock()
        if began_s < self._tidy_s or keep_ms is None is most_bytes:
            return
        try:
            for removed in remove_old(self._folder, self._now_ms(), keep_ms, most_bytes):
                self._owed.append(removed)
            self._pay()
        except StorageError as error:
            self._full(error)
        # A store may have very many objects to list.
        self._tidy_s = clock() + max(TIDY_S, TIDY_SHARE * (clock() - began_s))

    def end(self) -> None:
        """Note that the recorder ends here."""
        try:
            self._log.flush()
            self._pay()
            if self._begun:
                self._store([Ended(self._now_ms())])
        except StorageError as error:
            self._full(error)

    def _pay(self) -> None:
        """Store what happened once and could not be stored then."""
        if self._owed:
            self._store(self._owed)
            self._owed = []

    def _store(self, lines: Sequence[Line], *, begin: bool = False) -> None:
        """Store lines; where they begin a file, behind the incidents that are open."""
        now_ms = self._last_ms
        first: list[Line] = []
        if begin or not self._begun:
            id_, changes = self._cluster.cluster_id(ask=False), self._incidents.number
            first = [Began(now_ms, __version__, id_, self._begun, changes)]
            first += self._incidents.restated(now_ms)
        try:
            self._observed.append([*first, *lines], now_ms, begin=begin)
        except StorageError:
            self._known = None
            raise
        self._begun = True

    def _full(self, error: StorageError) -> None:
        if isinstance(error, NotOurs):
            raise error
        if self.state.disk is None:
            self.state = replace(self.state, disk=error.message)
            self._say("disk", f"{error.message}: nothing is recorded until that works again")

    def _say(self, what: str, text: str | None) -> None:
        """Report a problem once, and its end."""
        before = self._said.get(what)
        if text and text != before:
            self._said[what] = text
            self._note(text)
        elif not text and before:
            del self._said[what]
            self._note(f"over: {before}")

    def _now_ms(self) -> int:
        """Return the time; lines never go back, whatever the clock does."""
        self._last_ms = max(self._last_ms, self._cluster.now_ms())
        return self._last_ms

    def _stated(self, state: State) -> State:
        return replace(
            state,
            incidents=tuple(self._incidents.open.values()),
            read_ms=None if self._log.unread else self._log.read_ms,
            unread=self._log.unread,
            batches=sum(part.batches for part in self._log.parts.values()),
            rebalances={name: count for name, (count, _) in self._rebalances.items()},
        )

    def _count(self, now: Look) -> None:
        """Count the rebalances that were completed since the look before."""
        for name, facts in now.facts.items():
            if facts.history is None:
                continue  # unknown: no count begins, and none goes on
            done = [e.offset for e in facts.history if e.kind is Kind.REBALANCE_COMPLETED]
            count, newest = self._rebalances.get(name, (0, max(done, default=-1)))
            count += sum(offset > newest for offset in done)
            self._rebalances[name] = count, max([newest, *done])
        self._rebalances = {name: at for name, at in self._rebalances.items() if name in now.facts}


def resumed(folder: Folder) -> tuple[Incidents, int, str | None]:
    """Return the incidents that a recording leaves open, the time of its last line, and its cluster."""
    kept: list[Began | Incident] = []
    last_ms = 0
    for lines in newest_first(folder, Began, Looked, Ended, Removed, Incident):
        last_ms = max([last_ms, *(line.at_ms for line in lines)])
        kept = [*(line for line in lines if isinstance(line, Began | Incident)), *kept]
        # What was closed may come back: no later file repeats it.
        if kept and kept[0].at_ms < last_ms - BACK_MS:
            break
    began = [line for line in kept if isinstance(line, Began)]
    changes = max((line.changes for line in began), default=0)
    incidents = Incidents.resumed((line for line in kept if isinstance(line, Incident)), changes)
    return incidents, last_ms, next((line.cluster_id for line in began[::-1] if line.cluster_id), None)


def changes_after(folder: Folder, number: int) -> list[Incident]:
    """Return the changes of incidents in a recording after this one, in order."""
    changes: list[Incident] = []
    for lines in newest_first(folder, Began, Incident):
        new = [line for line in lines if isinstance(line, Incident) and line.event != OPEN]
        changes = [*(change for change in new if change.number > number), *changes]
        if any(isinstance(line, Began) and line.changes <= number for line in lines):
            break
    return changes
