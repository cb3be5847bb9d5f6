"""What a store holds, as of one run: coverage, names, the versions of the tables that count."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import kgroup
from kgroup.errors import ConfigError, StorageError
from kgroup.history.fold.topic_names import MAX_NAMES
from kgroup.history.items import BadRange, Seen
from kgroup.history.replay import Coverage, coverage_of
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.writing import TableFile

FORMAT = 3
"""2 was a folder with a manifest of its own; `earlier` reads it."""
_COUNTS = ("first_offset", "records", "missing", "complete_from", "complete_from_ms", "last_ms")


@dataclass(slots=True)
class Manifest:
    """What the store holds. `spans` are summaries of splits (`rows.SplitSummary`), in log order.

    `versions` are those of the tables that belong together. `files` are set in an earlier format alone, as
    are `folds` and `open_events` ("part-bucket" → path): where the newest run left off.
    """

    format: int = FORMAT
    kgroup_version: str = kgroup.__version__
    buckets: int = 1
    runs: list[Row] = field(default_factory=list)
    spans: list[Row] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    files: list[TableFile] = field(default_factory=list)
    folds: dict[str, str] = field(default_factory=dict)
    open_events: dict[str, str] = field(default_factory=dict)

    def learn(self, names: Mapping[str, str]) -> None:
        """Remember what commits tell of topic ids, up to MAX_NAMES of them, as a fold does.

        Every task of a fold gets them all.
        """
        for topic_id, name in names.items():
            if len(self.names) < MAX_NAMES:
                self.names.setdefault(topic_id, name)

    def last_offsets(self) -> dict[int, int]:
        """The last log offset that was read, by partition."""
        found: dict[int, int] = {}
        for span in self.spans:
            found[span["part"]] = max(found.get(span["part"], -1), span["last_offset"])
        return found

    def check_cluster(self, cluster: str | None) -> None:
        """ConfigError if what is to be read is of another cluster than what was read before."""
        known = {run.get("cluster_id") for run in self.runs} - {None}
        if cluster is not None and known and cluster not in known:
            text = (
                f"the tables are of cluster {', '.join(sorted(map(str, known)))}, the source is of {cluster}"
            )
            raise ConfigError(text, "write each cluster into a folder of its own")

    def read_before(self, run: int) -> set[str]:
        """The files that runs before `run` have read."""
        return {path for entry in self.runs if entry["run"] < run for path in entry["files"]}

    def coverage(self, bad: list[tuple[int, BadRange]] | None = None) -> list[Coverage]:
        """What is complete from where, of each partition, as a replay in process says it."""
        return [
            coverage_of(
                span["part"], span["source"], _seen(span), [b for p, b in bad or () if p == span["part"]]
            )
            for span in merged(self.spans)
        ]


def _seen(span: Row) -> Seen:
    return Seen(next_offset=span["last_offset"] + 1, **{name: span[name] for name in _COUNTS})


def merged(spans: Sequence[Row]) -> list[Row]:
    """One span a partition, in order of partitions, that says what all of its spans say."""
    told: dict[int, tuple[str, Seen]] = {}
    for span in sorted(spans, key=lambda s: (s["part"], s["first_offset"])):
        if span["part"] in told:
            told[span["part"]][1].follow(_seen(span))
        else:
            told[span["part"]] = (span["source"], _seen(span))
    return [
        {
            "part": part,
            "source": source,
            "last_offset": seen.next_offset - 1,
            **{name: getattr(seen, name) for name in _COUNTS},
        }
        for part, (source, seen) in told.items()
    ]


EARLIER = "manifest.json"
_EARLIER_FORMAT = 2


def earlier(path: Path) -> Manifest | None:
    """The manifest of a folder that an earlier kgroup wrote; None if there is none.

    ConfigError for a format before that, StorageError if it cannot be read.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != _EARLIER_FORMAT:
            hint = "write into a new folder; the segments are read again"
            raise ConfigError(f"{path.parent} was written by kgroup {told['kgroup_version']}", hint)
        told["files"] = [TableFile(**entry) for entry in told["files"]]
        return Manifest(**told)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from None
