"""Where earlier runs left the groups of a share: the newest row of each, read when needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.parquet as pq

from kgroup.errors import KgroupError, StorageError
from kgroup.history.fold.snapshot import Kept, kept
from kgroup.history.typed_json import Foreign
from kgroup.pipeline.schemas import FOLDS
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import STATE


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file of `folds`, relative to the store, and the bounds of the groups' hashes in it."""

    path: str
    least: int
    greatest: int


class _At(NamedTuple):
    """Where a state is: its run, its file, the row group there and the row in that."""

    run: int
    file: int
    row_group: int
    row: int


class Left:
    """The states of the groups with hashes from `first` to `last`; StorageError if a run did not write them.

    Names are read at once, states by row group, which is shared by groups in the order of their names.
    """

    def __init__(self, place: Place, files: Sequence[StateFile], first: int, last: int) -> None:
        self.place = place
        self.files = [file for file in files if file.least <= last and file.greatest >= first]
        self.pending: set[str] = set()
        """Groups with a transaction that had not ended."""
        self._opened: list[pq.ParquetFile] = []
        self._found: dict[str, _At] = {}
        self._states: dict[int, tuple[int, list[bytes]]] = {}
        for number, file in enumerate(self.files):
            with sound(place.uri(file.path)):
                self._opened.append(pq.ParquetFile(place.read(file.path)))
                self._look(number, first, last)

    def _look(self, number: int, first: int, last: int) -> None:
        file = self._opened[number]
        for name in ("key_hash", "group_id", "pending", "state"):
            if file.schema_arrow.field(name).type != FOLDS.field(name).type:
                raise Foreign(f"column {name} is not {FOLDS.field(name).type}")
        for row_group in range(file.num_row_groups):
            rows = file.read_row_group(row_group, columns=["key_hash", "group_id", "pending", "run"])
            columns = (rows[name].to_pylist() for name in ("key_hash", "group_id", "pending", "run"))
            for row, (key_hash, group, pending, run) in enumerate(zip(*columns, strict=True)):
                if first <= key_hash <= last and (group not in self._found or run > self._found[group].run):
                    self._found[group] = _At(run, number, row_group, row)
                    (self.pending.add if pending else self.pending.discard)(group)

    def kept(self, group: str, part: int) -> Kept | None:
        """Return where a group of a partition was left; None if it is new."""
        at = self._found.get(group)
        if at is None:
            return None
        with sound(self.place.uri(self.files[at.file].path)):
            if self._states.get(at.file, (-1, []))[0] != at.row_group:
                read = self._opened[at.file].read_row_group(at.row_group, columns=["state"])
                self._states[at.file] = at.row_group, read["state"].to_pylist()
            stored = kept().decode(self._states[at.file][1][at.row])
            if stored.log_partition != part:
                raise Foreign(f"it is of partition {stored.log_partition}")
            if stored.group is not None and stored.group.state.group_id != group:
                raise Foreign(f"the row of {group} is about another group")
            return stored


@contextmanager
def sound(uri: str) -> Iterator[None]:
    """Raise StorageError for a state that kgroup did not store, whatever is wrong with it."""
    try:
        yield
    except KgroupError:
        raise
    except Exception as error:
        why = str(error) if isinstance(error, Foreign) else f"{type(error).__name__}: {error}"
        text = f"{uri}: column state of table {STATE} is not what a run leaves there: {why}"
        raise StorageError(text, "read the segments into a new folder") from error
