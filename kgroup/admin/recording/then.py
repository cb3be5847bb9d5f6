"""What a recorder had seen at a moment: the check-ups that were valid, or why none is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgroup.admin.models import ItemError
from kgroup.admin.recording.days import Unreadable, files_of, read
from kgroup.admin.recording.lines import Began, Ended, Gap, Judged, Line, Looked, NotJudged, World
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.fold.removals import Today
from kgroup.history.sources.layout import OBSERVED

INTERVALS = 3
"""The number of intervals after which a look says nothing about the present any more."""


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

    def take(self, line: Line) -> None:
        """Add a line of that moment, or of one before it."""
        match line:
            case Began():
                self.ended = None
                if not line.goes_on:
                    self.began, self.looked = line, None
                    self.judged.clear()
                self.began = self.began or line
            case Ended():
                self.ended = line
            case Looked():
                self.looked = line
            case Judged() | NotJudged():
                self.judged[line.group_id] = line

    @property
    def text(self) -> str:
        """When it was seen, and what no look shows, in words."""
        assert self.looked is not None
        after = f", and again at {utc(self.next_ms)}" if self.next_ms is not None else ""
        every = f"{self.looked.interval_ms / 1000:g} s"
        unread = self.looked.unread
        log = f"; __consumer_offsets was not recorded: {unread}" if unread else ""
        return (
            f"as of {utc(self.at_ms)}: seen at {utc(self.looked.at_ms)}{after}; seen every {every}, and what "
            f"began and ended between two looks is unknown{log}"
        )


def at(folder: Path, time_ms: int) -> Then:
    """Return what the recorder that wrote this folder had seen at a time.

    StorageError if there are no observations.
    """
    files = files_of(folder)
    if not files:
        hint = "kgroup record writes them; the segments of a capture have no check-ups"
        raise StorageError(f"{folder} has no observations ({OBSERVED}/)", hint)
    found = Then(time_ms)
    after: Began | Looked | Ended | None = None
    for line in _around(files, time_ms):
        if isinstance(line, Unreadable):
            found.unreadable.append(line.text)
        elif line.at_ms <= time_ms:
            found.take(line)
        elif isinstance(line, Began | Looked | Ended):
            after = line
            break
    found.next_ms = after.at_ms if isinstance(after, Looked) else None
    found.unknown = _unknown(found, after)
    return found


def _around(files: Sequence[Path], time_ms: int) -> Iterator[Line | Unreadable]:
    """Yield the lines from the file before the one of that day on: each begins with all that was known."""
    day = utc(time_ms)[:10]
    before = [file for file in files if file.stem < day]
    for file in [*before[-1:], *files[len(before) :]]:
        yield from read(file)


def _unknown(found: Then, after: Began | Looked | Ended | None) -> str | None:
    """Return why nothing is known of a moment; None if the look before it stands for it."""
    moment, look, began, ended = utc(found.at_ms), found.looked, found.began, found.ended
    again = f"it began again at {utc(after.at_ms)}" if after is not None else "it did not begin again"
    if found.unreadable:
        return f"{found.unreadable[0]}: another release of kgroup may read it"
    if began is None:
        first = f" at {utc(after.at_ms)}" if after is not None else ""
        return f"the recording begins{first}, after {moment}"
    if ended is not None:
        return f"the recorder did not run at {moment}: it ended at {utc(ended.at_ms)}, and {again}"
    if look is None:
        return f"the recorder began at {utc(began.at_ms)}, and had not looked at any group by {moment}"
    if isinstance(after, Began) and not after.goes_on and found.at_ms > look.at_ms:
        what = f"the recorder may not have run at {moment}: its last look was at {utc(look.at_ms)}"
        return f"{what}, and {again}"
    if look.failed:
        return f"nothing was seen at {utc(look.at_ms)}: {look.unseen[0].message}"
    if found.at_ms - look.at_ms > INTERVALS * look.interval_ms:
        until = f"the next at {utc(after.at_ms)}" if after is not None else "no later one is recorded"
        return f"nothing was seen at {moment}: the last look was at {utc(look.at_ms)}, {until}"
    return None


def not_found(found: Then, name: str) -> ItemError:
    """Return why there is no check-up of a group at that moment."""
    line = found.judged.get(name)
    if isinstance(line, NotJudged) and line.error is not None:
        return line.error
    unseen = found.looked.unseen if found.looked is not None else ()
    if unseen:
        text = f"{name} was not listed, and not all groups were: {unseen[0].message}"
        return ItemError(name, "NOT_SEEN", text)
    return ItemError(name, "GROUP_ID_NOT_FOUND", f"there was no group {name} at {utc(found.at_ms)}")


def today_in(folder: Path, until_ms: int | None) -> Today:
    """Return the topics and the retention as the last look by this time saw them."""
    files = files_of(folder)
    if until_ms is not None:
        files = [file for file in files if file.stem <= utc(until_ms)[:10]]
    world: World | None = None
    seen_ms = 0
    for file in files[-1:]:  # it begins with all that was known
        for line in read(file, World, Looked):
            if isinstance(line, Unreadable) or (until_ms is not None and line.at_ms > until_ms):
                continue
            if isinstance(line, World):
                world = line
            elif isinstance(line, Looked) and not line.failed:
                seen_ms = line.at_ms
    if world is None:
        return Today()
    return Today(None if world.topics is None else dict(world.topics), world.retention_ms, seen_ms)


def gaps_in(folder: Path) -> list[Gap]:
    """Return the gaps that the recorder of this folder noticed."""
    return [line for file in files_of(folder) for line in read(file, Gap) if isinstance(line, Gap)]
