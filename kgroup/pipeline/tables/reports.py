"""What tasks of a run report to the driver, which Spark moves as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgroup.errors import KgroupError
from kgroup.pipeline.read.posting import Report
from kgroup.pipeline.read.rows import SplitSummary
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.spark.workers import Worker
from kgroup.pipeline.tables.writing import TableFile


@dataclass(frozen=True, slots=True)
class SplitRead(Report):
    """A split that was read: what was in it, in `summary`, the files of rows and those of the log, and where.

    `place` is where its last batch begins. `cut` names a file that ends inside a batch, and it `stopped`
    there if offsets are missing behind.
    """

    part: int
    number: int
    files: Sequence[TableFile]
    bytes: int
    summary: SplitSummary | None
    read: Sequence[str]
    place: tuple[str, int] | None
    cut: str
    stopped: bool
    waits: bool
    has_share_groups: bool
    worker: Worker


@dataclass(frozen=True, slots=True)
class ShareFolded(Report):
    """A share of a partition that was folded; `digest` is of the splits as its task saw them."""

    part: int
    digest: int
    files: Sequence[TableFile]


@dataclass(frozen=True, slots=True)
class NamesLearned(Report):
    """The names of topic ids in all splits."""

    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StateRead(Report):
    """A partition of `__share_group_state`; `state` is where its fold stopped, as `runs` keeps it.

    It is None if nothing was read, and `failure` is why not everything was.
    """

    part: int
    failure: KgroupError | None
    state: Row | None = None
    files: Sequence[TableFile] = ()
