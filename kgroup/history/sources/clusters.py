"""Checks that segments found together are of one cluster: partitions with the same number are one log.

A backup may hold the data folders of several brokers, which is fine, or of several clusters, which is not:
their partitions have the same numbers. Kafka's brokers write their cluster's id next to the folders of
partitions; where it is missing, copies of a partition must hold the same records at the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kgroup.errors import ConfigError, DecodeError
from kgroup.history.decode.records import raw_records
from kgroup.history.decode.scan import CONTROL, BatchHeader, Scanner
from kgroup.history.sources.chunks import file_chunks
from kgroup.history.sources.copies import copies_of, span_of
from kgroup.history.sources.layout import AnyFile, AnyFolder, base_offset, folder_of, text_of

META_FILE = "meta.properties"
"""A file that Kafka keeps in each of its data folders: among others, with `cluster.id`."""
_COMPARED = 500
"""Records compared where copies begin to overlap, and as many where they end."""
_CHUNK = 1 << 20
_HINT = "read one cluster at a time: name its folders only"


def check_one_cluster(partitions: Mapping[int, Sequence[AnyFile]]) -> str | None:
    """Return the id of the one cluster of all these segments; None if no folder has it.

    ConfigError, naming two folders, if they are of different clusters: by their ids, or because they hold
    different records at the same offset.
    """
    # Ids first: they need no record to be read, and name the clusters.
    known: dict[str, AnyFolder] = {}
    ids: dict[AnyFolder, str | None] = {}
    for file in (file for files in partitions.values() for file in files):
        data = folder_of(file).parent
        if data not in ids:
            lines = (text_of(data, META_FILE, file) or "").splitlines()
            values = dict(line.split("=", 1) for line in lines if "=" in line)
            ids[data] = values.get("cluster.id", "").strip() or None
        if (cluster_id := ids[data]) is not None:
            known.setdefault(cluster_id, file.parent)
    if len(known) > 1:
        (one, here), (other, there), *_ = known.items()
        text = f"{here} and {there} are of different clusters: {one} and {other}"
        raise ConfigError(text, _HINT)
    for number, files in partitions.items():
        for ours, theirs in pairwise(copies_of(files)):
            # Copies of one cluster may differ where a leader was replaced without its last records.
            if all(ids[folder_of(copy.files[0]).parent] for copy in (ours, theirs)):
                continue
            if (offset := _first_difference(ours.files, theirs.files)) is not None:
                where = f"{ours.name} and {theirs.name}"
                text = f"{where} hold different records at offset {offset} of partition {number}"
                raise ConfigError(f"{text}: they are of different clusters, or one is damaged", _HINT)
    return next(iter(known), None)


def _first_difference(ours: Sequence[AnyFile], theirs: Sequence[AnyFile]) -> int | None:
    """Return the first compared offset at which both hold a record, and not the same one."""
    a, b = span_of(ours), span_of(theirs)
    if a is None or b is None:
        return None
    start, end = max(a.first, b.first), min(a.last, b.last)
    # Where the copies begin to overlap, and where they end, too: clusters made from one copy diverge later.
    for first in sorted({start, max(start, end - _COMPARED)}) if start <= end else ():
        if (offset := _differing(_records(ours, first), _records(theirs, first))) is not None:
            return offset
    return None


def _differing(ours: Iterator[_Record], theirs: Iterator[_Record]) -> int | None:
    compared = 0
    mine, other = next(ours, None), next(theirs, None)
    while mine is not None and other is not None and compared < _COMPARED:
        if mine[0] == other[0]:
            if mine[1:] != other[1:]:
                return mine[0]
            compared += 1
            mine, other = next(ours, None), next(theirs, None)
        elif mine[0] < other[0]:
            mine = next(ours, None)
        else:
            other = next(theirs, None)
    return None


_Record = tuple[int, bytes | None, bytes | None]


def _batches(files: Sequence[AnyFile], check_crc: bool) -> Iterator[tuple[bytes, BatchHeader]]:
    for path in files:
        try:
            for chunk, headers in file_chunks(path, Scanner(str(path), check_crc=check_crc), size=_CHUNK):
                for header in headers:
                    yield chunk, header
        except OSError:  # reported by its reader
            continue


def _records(files: Sequence[AnyFile], start: int) -> Iterator[_Record]:
    """Yield the records from an offset on; those that do not decode are skipped."""
    last = start
    # A segment is named by its first offset: those before the one that holds `start` need not be read.
    named = [base_offset(file) for file in files]
    begin = max((i for i, base in enumerate(named) if base is not None and base <= start), default=0)
    for chunk, header in _batches(files[begin:], check_crc=True):
        # Compaction may have removed a marker from one copy only.
        if header.last_offset < start or header.attributes & CONTROL:
            continue
        try:
            for record in raw_records(chunk, header):
                if record.offset >= last:
                    last = record.offset + 1
                    yield record.offset, record.key, record.value
        except DecodeError:
            continue
