"""What a recorder had seen at a moment: the check-ups that were valid, or why none is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from kgroup.admin.models import ItemError
from kgroup.admin.read.lag_report import GroupLag
from kgroup.admin.recording.lags import lag_of
from kgroup.admin.recording.lines import (
    Began,
    Commits,
    Ended,
    Ends,
    Judged,
    Lags,
    Line,
    Looked,
    NotJudged,
    World,
)
from kgroup.admin.recording.observed import File, Unreadable, begun, newest_first, read, stamp
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.fold.removals import Today
from kgroup.history.sources.folders import Folder
from kgroup.history.sources.layout import OBSERVED

INTERVALS = 3
"""The number of intervals after which a look says nothing about the present any more."""
_ALWAYS = (Began, Ended, Looked, Judged, NotJudged)
_OF_LAG = (Ends, Lags, Commits)


@dataclass(slots=True)
class Then:
    """The check-ups at a moment, by group. `unknown` is why nothing is known of it.

    `looked` is the look that showed them, and `next_ms` the time of the one after it.
    """

    at_ms: int
    judged: dict[str, Judged | NotJudged] = field(default_factory=dict)
    looked: Looked | None = None
    next_ms: int | None = None
    unknown: str | None = None
    unreadable: list[str] = field(default_factory=list)
    began: Began | None = None
    ended: Ended | None = None
    _ends: dict[str, Ends] = field(default_factory=dict)
    _lags: dict[str, Lags] = field(default_factory=dict)
    _commits: dict[tuple[str, str], Commits] = field(default_factory=dict)
    _look: list[Line] = field(default_factory=list)

    def take(self, line: Line) -> None:
        """Add a line of that moment, or of one before it. Those of a look count once it is whole."""
        if isinstance(line, Began):
            self._look.clear()
        self._look.append(line)
        if isinstance(line, Looked | Ended) or (isinstance(line, Began) and not line.goes_on):
            for pending in self._look:
                self._count(pending)
            self._look.clear()

    def _count(self, line: Line) -> None:
        match line:
            case Began():
                self.began, self.looked, self.ended = line, None, None
                for known in (self.judged, self._ends, self._lags, self._commits):
                    known.clear()
            case Ended():
                self.ended = line
            case Looked():
                self.looked = line
            case Judged() | NotJudged():
                self.judged[line.group_id] = line
            case Lags():
                self._lags[line.group_id] = line
            case Commits():
                self._commits[line.group_id, line.topic] = line
            case Ends():
                self._ends[line.topic] = line

    def lag(self, group_id: str) -> GroupLag | None:
        """Return the lag of a group at the look; None where that did not look at it."""
        line, judged = self._lags.get(group_id), self.judged.get(group_id)
        if self.looked is None or line is None or not isinstance(judged, Judged):
            return None
        topics = dict.fromkeys(row.topic for row in line.rows)
        commits = [self._commits[group_id, topic] for topic in topics]
        return lag_of(self.looked.at_ms, line, commits, [self._ends[t] for t in topics if t in self._ends])

    @property
    def text(self) -> str:
        """When it was seen, and what no look shows, in words."""
        assert self.looked is not None
        age = f"{(self.at_ms - self.looked.at_ms) / 1000:g} s before"
        after = f", and again at {utc(self.next_ms)}" if self.next_ms is not None else ""
        every = f"{self.looked.interval_ms / 1000:g} s"
        unread = self.looked.unread
        log = f"; __consumer_offsets was not recorded: {unread}" if unread else ""
        return (
            f"as of {utc(self.at_ms)}: seen at {utc(self.looked.at_ms)}, {age}{after}; seen every {every}, "
            f"and what began and ended between two looks is unknown{log}"
        )


def at(folder: Folder, time_ms: int, *, with_lag: bool = False) -> Then:
    """Return what the recorder that wrote this folder had seen at a time; of lag only where that is wanted.

    StorageError if there are no observations.
    """
    parts = begun(folder)
    if not parts:
        hint = "kgroup record writes them; the segments of a capture have no check-ups"
        raise StorageError(f"{folder} has no observations ({OBSERVED}/)", hint)
    first = sum(files[0].began <= stamp(time_ms) for files in parts) - 1
    then, after = _read(parts[max(first, 0) :], time_ms, with_lag)
    # The look that begins a file may be torn, or later than the name, which has no milliseconds.
    while then.began is None and first > 0:
        first -= 1
        then, after = _read(parts[first:], time_ms, with_lag)
    then.next_ms = after.at_ms if isinstance(after, Looked) else None
    then.unknown = _unknown(then, after)
    return then


def _read(
    parts: Sequence[Sequence[File]], time_ms: int, with_lag: bool
) -> tuple[Then, Began | Looked | Ended | None]:
    """Return what was seen by then, and the first line of what came after it."""
    then = Then(time_ms)
    kinds = (*_ALWAYS, *_OF_LAG) if with_lag else _ALWAYS
    for line in read(chain.from_iterable(parts), *kinds):
        if isinstance(line, Unreadable):
            then.unreadable.append(line.text)
        elif line.at_ms <= time_ms:
            then.take(line)
        elif isinstance(line, Began) and line.goes_on and then.began is not None:
            continue  # the look with which it goes on is behind it
        elif isinstance(line, Began | Looked | Ended):
            return then, line
    return then, None


def _unknown(then: Then, after: Began | Looked | Ended | None) -> str | None:
    """Return why nothing is known of a moment; None if the look before it stands for it."""
    moment, look, began, ended = utc(then.at_ms), then.looked, then.began, then.ended
    again = f"it began again at {utc(after.at_ms)}" if after is not None else "it did not begin again"
    if then.unreadable:
        return f"{then.unreadable[0]}: another release of kgroup may read it"
    if began is None:
        if isinstance(after, Began) and after.goes_on:
            return f"what was seen before {utc(after.at_ms)}, and so at {moment}, is removed"
        first = f" at {utc(after.at_ms)}" if after is not None else ""
        return f"the recording begins{first}, after {moment}"
    if ended is not None:
        return f"the recorder did not run at {moment}: it ended at {utc(ended.at_ms)}, and {again}"
    if look is None:
        return f"the recorder began at {utc(began.at_ms)}, and had not looked at any group by {moment}"
    if isinstance(after, Began) and then.at_ms > look.at_ms:
        what = f"the recorder may not have run at {moment}: its last look was at {utc(look.at_ms)}"
        return f"{what}, and {again}"
    if look.failed:
        return f"nothing was seen at {utc(look.at_ms)}: {look.unseen[0].message}"
    if then.at_ms - look.at_ms > INTERVALS * look.interval_ms:
        until = f"the next at {utc(after.at_ms)}" if after is not None else "no later one is recorded"
        return f"nothing was seen at {moment}: the last look was at {utc(look.at_ms)}, {until}"
    return None


def not_found(then: Then, name: str) -> ItemError:
    """Return why there is no check-up of a group at that moment."""
    line = then.judged.get(name)
    if isinstance(line, NotJudged) and line.error is not None:
        return line.error
    unseen = then.looked.unseen if then.looked is not None else ()
    if unseen:
        text = f"{name} was not listed, and not all groups were: {unseen[0].message}"
        return ItemError(name, "NOT_SEEN", text)
    return ItemError(name, "GROUP_ID_NOT_FOUND", f"there was no group {name} at {utc(then.at_ms)}")


def today_in(folder: Folder, until_ms: int | None) -> Today:
    """Return the topics and the retention as the last look by this time saw them."""
    for lines in newest_first(folder, World, Looked, until_ms=until_ms):
        today = Today()
        world: World | None = None
        for line in lines:
            if isinstance(line, World):
                world = line
            elif isinstance(line, Looked) and not line.failed and world is not None:
                topics = None if world.topics is None else dict(world.topics)
                today = Today(topics, world.retention_ms, line.began_ms)
        if today.seen_ms is not None:
            return today
    return Today()


def unread_in(folder: Folder) -> str | None:
    """Return why `__consumer_offsets` was not recorded at the last look; None where it was."""
    looks = (lines[-1] for lines in newest_first(folder, Looked) if lines)
    newest = next(looks, None)
    return newest.unread if isinstance(newest, Looked) else None
