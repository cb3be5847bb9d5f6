"""What a store holds, as of one run: coverage, names, the valid versions of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

import kgroup
from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import ConfigError, StorageError
from kgroup.history.deliveries import KeptDeliveries, kept_deliveries
from kgroup.history.fold.topic_names import MAX_NAMES
from kgroup.history.log_items import NOT_READ, BadRange, Problem, Seen
from kgroup.history.replay import Coverage, coverage_of
from kgroup.history.typed_json import Foreign
from kgroup.pipeline.read.course import Course
from kgroup.pipeline.read.posting import may_hold
from kgroup.pipeline.schemas import TABLES, Row

OLDEST = 9
"""The oldest format of a table that is read."""
FOLDED = ("events", "events_open", "folds")
"""The tables that can be made again, from the others."""
FORMATS: Mapping[str, int] = {
    **dict.fromkeys(TABLES, 9),
    **dict.fromkeys(("runs", "bad_ranges"), 10),
    **dict.fromkeys(FOLDED, 14),
}
"""The format of each table. Increase it whenever its columns or their meaning change.

Columns are added in place; what `FOLDED` holds is folded again. `folds` includes the layout of
`history.fold.snapshot`, `deliveries` that of the state by which its fold goes on.
"""
_COUNTS = ("first_offset", "records", "missing", "complete_from", "complete_from_ms", "last_ms")
_GAPS = ("gaps", "gap_end", "gap_ms")


@dataclass(slots=True)
class Manifest:
    """What the store holds. `spans` are summaries of splits (`rows.SplitSummary`), in log order.

    `share_groups`: some of their records are among them. `deliveries` has, per partition of
    `__share_group_state`, where its fold stopped, and what is damaged. `versions` are those of the tables
    that belong together, `formats` those of what is in them. `places` has, per partition, the segment and the
    byte where the batch begins that was read last.
    """

    kgroup_version: str = kgroup.__version__
    runs: list[Row] = field(default_factory=list)
    spans: list[Row] = field(default_factory=list)
    share_groups: bool = False
    deliveries: dict[int, Row] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    formats: dict[str, int] = field(default_factory=lambda: dict(FORMATS))
    places: dict[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def outdated(self) -> bool:
        """Whether an older kgroup has folded the events and states."""
        return any(self.formats[table] < FORMATS[table] for table in FOLDED)

    def learn(self, names: Mapping[str, str]) -> None:
        """Add topic names from commits, up to MAX_NAMES of them, as a fold does.

        Every task of a fold gets them all.
        """
        for topic_id, name in names.items():
            if len(self.names) < MAX_NAMES:
                self.names.setdefault(topic_id, name)

    def courses(self) -> dict[int, Course]:
        """Return how far each partition was read, and what is missing of it."""
        return {span["part"]: Course.of(span) for span in merged(self.spans)}

    def last_offsets(self) -> dict[int, int]:
        """Return the last log offset that was read, by partition."""
        offsets: dict[int, int] = {}
        for span in self.spans:
            offsets[span["part"]] = max(offsets.get(span["part"], -1), span["last_offset"])
        return offsets

    def parts_of(self, group: str) -> set[int]:
        """Return the partitions that may hold a group: one, unless few groups of a partition were read."""
        spans = merged(self.spans)
        return {span["part"] for span in spans if may_hold(span["modulus"], span["part"], group)}

    def beginnings(self) -> list[tuple[int, int, int]]:
        """Return each partition with the first offset that was read, and its time."""
        return [(span["part"], span["first_offset"], span["first_ms"]) for span in merged(self.spans)]

    def check_cluster(self, cluster: str | None) -> None:
        """Raise ConfigError if the input is of another cluster than what was read before."""
        known = {run.get("cluster_id") for run in self.runs} - {None}
        if cluster is not None and known and cluster not in known:
            text = (
                f"the tables are of cluster {', '.join(sorted(map(str, known)))}, the source is of {cluster}"
            )
            raise ConfigError(text, "write each cluster into a folder of its own")

    def read_before(self, run: int) -> set[str]:
        """Return the files that runs before `run` have read."""
        return {path for entry in self.runs if entry["run"] < run for path in entry["files"]}

    def coverage(self, bad: list[tuple[int, BadRange]] | None = None) -> list[Coverage]:
        """Return each partition's coverage, as a replay in process reports it."""
        return [
            coverage_of(
                span["part"], span["source"], _seen(span), [b for p, b in bad or () if p == span["part"]]
            )
            for span in merged(self.spans)
        ]

    def delivery_coverage(self) -> list[Coverage]:
        """Return the same of `__share_group_state`; StorageError if what is stored of it cannot be used."""
        return [
            coverage_of(part, row["source"], stopped_at(row).seen, bad_in(row), topic=SHARE_STATE_TOPIC)
            for part, row in sorted(self.deliveries.items())
        ]


def stopped_at(row: Row) -> KeptDeliveries:
    """Return where the fold of a partition of `__share_group_state` stopped; StorageError if unusable."""
    try:
        return kept_deliveries().decode(row["state"])
    except Foreign as error:
        text = f"what the tables keep of {SHARE_STATE_TOPIC}-{row['part']} cannot be used: {error}"
        raise StorageError(text, "read the segments into a new folder") from None


def bad_in(row: Row) -> list[BadRange]:
    """Return what was damaged of that partition."""
    return list(map(range_of, row["bad"]))


def row_of(bad: BadRange) -> Row:
    """Return a range as `runs` stores it."""
    return {"source": bad.source, "start": bad.start, "end": bad.end, "reason": bad.reason}


def range_of(row: Row) -> BadRange:
    """Return a stored range; those of format 9 and in `runs` have the problem in the reason alone."""
    # Delta adds columns in place, but no fields of the structs in `runs`; rows of format 9 have neither.
    said = Problem.NOT_READ if row["reason"].startswith(NOT_READ) else Problem.CORRUPT
    problem = Problem(row.get("problem") or said)
    return BadRange(row["source"], row["start"], row["end"], row["reason"], problem)


def _seen(span: Row) -> Seen:
    return Seen(next_offset=span["last_offset"] + 1, **{name: span[name] for name in _COUNTS})


def merged(spans: Sequence[Row]) -> list[Row]:
    """Return one span per partition, in order of partitions, that combines all of its spans."""
    by_part: dict[int, tuple[str, Seen, Course, int]] = {}
    moduli: dict[int, int] = {}
    for span in sorted(spans, key=lambda s: (s["part"], s["first_offset"])):
        if span["part"] in by_part:
            by_part[span["part"]][1].follow(_seen(span))
        else:
            by_part[span["part"]] = (span["source"], _seen(span), Course(), span["first_ms"])
        by_part[span["part"]][2].follow(Course.of(span), span["first_ms"])
        moduli[span["part"]] = gcd(moduli.get(span["part"], 0), span["modulus"])
    return [
        {
            "part": part,
            "source": source,
            "last_offset": seen.next_offset - 1,
            "first_ms": first_ms,
            "modulus": moduli[part],
            **{name: getattr(seen, name) for name in _COUNTS},
            **{name: getattr(course, name) for name in _GAPS},
        }
        for part, (source, seen, course, first_ms) in by_part.items()
    ]
