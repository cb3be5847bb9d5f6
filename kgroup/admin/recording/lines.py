"""The observations of a recorder: one declared value a line. Times are in ms of the recorder's clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Alike, Checkup
from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.read.lag_report import PartitionLag
from kgroup.admin.statuses import Unseen
from kgroup.history.typed_json import Codec

OPENED, UPDATED, CLOSED, OPEN = "opened", "updated", "closed", "open"


@dataclass(frozen=True, slots=True)
class Began:
    """The recorder began, or began another file (`goes_on`). `changes` of incidents stand in files before."""

    at_ms: int
    version: str
    cluster_id: str | None
    goes_on: bool
    changes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The recorder ended; after a crash there is no such line."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Looked:
    """A look is over: what it found different stands in the lines before it. Topics are those of its start.

    `unseen` are the reasons why there may be more groups, or why nothing was seen (`failed`). `unread` is why
    `__consumer_offsets` is not recorded.
    """

    at_ms: int
    began_ms: int
    interval_ms: int
    failed: bool = False
    unseen: tuple[ItemError, ...] = ()
    unread: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The check-up of a group, where it differs from the one before."""

    at_ms: int
    group_id: str
    type: str
    state: str
    findings: tuple[Diagnosis, ...]
    statuses: tuple[Alike, ...]
    unseen: tuple[Unseen, ...]

    @classmethod
    def of(cls, checkup: Checkup, at_ms: int = 0) -> Judged:
        group = checkup.group
        return cls(
            at_ms,
            group.group_id,
            group.type,
            group.state,
            checkup.findings,
            checkup.statuses,
            checkup.unseen,
        )

    @property
    def checkup(self) -> Checkup:
        """The check-up as `doctor` shows it."""
        group = GroupDescription(self.group_id, self.type, "", self.state)
        return Checkup(group, self.findings, self.unseen, self.statuses)


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A group that could not be examined, and why; without a reason it does not exist any more."""

    at_ms: int
    group_id: str
    error: ItemError | None


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the logs of a topic begin and end, for the partitions that groups read; None is unknown."""

    at_ms: int
    topic: str
    partitions: tuple[int, ...]
    starts: tuple[int | None, ...]
    ends: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Lags:
    """The lag of a group; `all_rows` is off where it may read partitions that no row has.

    A row whose commit stands in `Commits` has nothing that follows from that and from `Ends`.
    """

    at_ms: int
    group_id: str
    type: str
    state: str
    all_rows: bool
    errors: tuple[ItemError, ...]
    no_offsets: str | None
    rows: tuple[PartitionLag, ...]


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits of a group for a topic, and the times of the records there (None: unknown, or none)."""

    at_ms: int
    group_id: str
    topic: str
    partitions: tuple[int, ...]
    offsets: tuple[int, ...]
    written_ms: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """A member and its process."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    host: str | None


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a group, where they differ from those before; None is unknown."""

    at_ms: int
    group_id: str
    members: tuple[Person, ...] | None


@dataclass(frozen=True, slots=True)
class World:
    """All topics with their ids, and offsets.retention.minutes, where either changed; None is unknown.

    They narrow down why offsets are gone (`removals.Today`).
    """

    at_ms: int
    topics: tuple[tuple[str, str], ...] | None
    retention_ms: int | None


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that was removed to keep the recording within its limits.

    The name of a segment has the first offset that went; that of the oldest one there, the first one left.
    """

    at_ms: int
    file: str


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that is wrong, with one cause and all the groups that it concerns.

    `number` counts the changes of all incidents: each is sent once. `event` is opened, updated or closed;
    `open` repeats one at the start of a file. `caused_by` says so where no record names who did it.
    """

    at_ms: int
    number: int
    event: str
    id: str
    key: str
    since_ms: int
    severity: str
    codes: tuple[str, ...]
    groups: tuple[str, ...]
    title: str
    caused_by: str
    evidence: tuple[str, ...]
    run: str


Line: TypeAlias = (
    Began | Ended | Looked | Judged | NotJudged | Ends | Lags | Commits | Members | World | Removed | Incident
)
CODEC: Codec[Line] = Codec(Line)


def about(line: Line) -> tuple[object, ...]:
    """Return what a line is about: a later one about the same takes its place."""
    kind = Judged if isinstance(line, NotJudged) else type(line)
    return kind, getattr(line, "group_id", None), getattr(line, "topic", None)


def content(line: Line) -> object:
    """Return what a line says, whenever it says so."""
    if isinstance(line, Commits):
        # Of one record the time differs by how long the looks took.
        return line.partitions, line.offsets, [written_ms is None for written_ms in line.written_ms]
    return replace(line, at_ms=0)
