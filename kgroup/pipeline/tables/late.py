"""Segments that came too late: offsets that the tables have passed and do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kgroup.errors import StorageError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.sources.layout import AnyFile, base_offset
from kgroup.pipeline.read.inputs import Input, Segments
from kgroup.pipeline.tables.store import Store, number_in

_LOOK_BYTES = 1 << 20
"""So much of a segment is compared with the tables."""


@dataclass(frozen=True, slots=True)
class Late:
    """A segment with records that the tables lack, the first of them at `offset`, and will not get."""

    part: int
    file: str
    offset: int

    def __str__(self) -> str:
        return (
            f"partition {self.part} is read further: {self.file} holds records that the tables lack, "
            f"from offset {self.offset} on"
        )


def late_segments(origin: Input, store: Store) -> list[Late]:
    """Return the segments, never read, with offsets before those from which on the tables lack nothing.

    The beginning of each is compared with the table `batches`: a batch that it lacks, or with fewer records.
    Where a first run was to begin (`--since`), what lies before the first offset does not count.
    """
    if not isinstance(origin, Segments):
        return []
    known = {covered.partition: covered for covered in store.manifest.coverage()}
    read = store.manifest.read_before(1 << 62)
    late: list[Late] = []
    for log in origin.logs:
        covered = known.get(log.partition)
        for file in log.files if covered is not None else ():
            base = base_offset(file)
            if covered is None or base is None or base >= covered.complete_from or str(file) in read:
                continue
            first = 0 if origin.since is None else covered.first_offset
            if (offset := _lacking(file, range(first, covered.last_offset + 1), log.partition, store)) >= 0:
                late.append(Late(log.partition, str(file), offset))
    return late


def _lacking(file: AnyFile, passed: range, part: int, store: Store) -> int:
    """Return the offset of the first batch with records that the tables lack; -1 if there is none."""
    headers = [header for header in _headers(file) if header.base_offset in passed]
    if not headers:
        return -1
    known = _batches(store, part, headers[0].base_offset, headers[-1].last_offset)
    return next((h.base_offset for h in headers if h.records > known.get(h.last_offset, 0)), -1)


def _headers(file: AnyFile) -> Iterator[BatchHeader]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LOOK_BYTES)
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from None
    yield from Scanner(str(file)).headers(data, False)


def _batches(store: Store, part: int, first: int, last: int) -> Mapping[int, int]:
    """Return the records of each batch in the tables, by its last offset, which compaction keeps."""
    batches: dict[int, int] = {}
    for name, (least, greatest) in store.bounds("batches", "log_offset").items():
        if number_in(name, "part") == part and least <= last and greatest >= first:
            rows = store.read(name).select(["last_offset", "records"])
            batches |= dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return batches
