"""Compaction of a keyed log by the rules of Kafka's log cleaner, run by the host between requests.

Of each key, the last record stays, at its offset. Tombstones, and the markers of transactions whose
data is gone, stay until a delete horizon, written into the batch by the first pass that meets them,
has passed (KIP-534). Records of aborted transactions go; nothing from the first open transaction on
and nothing in the active segment is touched. Unlike Kafka, no empty batch is kept to remember a
producer's last sequence: offsets logs are written without sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kgroup.errors import StorageError
from kgroup.log.files import CLEANED, CLEANED_TO, read_checkpoint, write_checkpoint
from kgroup.log.interface import Placed
from kgroup.log.partition import PartitionLog
from kgroup.log.segment import MAX_RELATIVE_OFFSET, Segment
from kgroup.log.transactions import Transactions
from kgroup.protocol.batches import Batch, LogRecord, rebuild_batch

DELETE_RETENTION_MS = 86_400_000
"""log.cleaner.delete.retention.ms"""


def dirty_ratio(log: PartitionLog, stable: int | None = None) -> float:
    """Return the share of the sealed segments' bytes that no pass has cleaned yet, 0 if there are none.

    Segments that do not end by the last stable offset, if that is given, do not count.
    """
    first_dirty = _first_dirty(log)
    sealed = [s for s in log.segments[:-1] if stable is None or s.end_offset <= stable]
    total = sum(segment.size for segment in sealed)
    return sum(s.size for s in sealed if s.end_offset > first_dirty) / total if total else 0.0


def is_dirty(log: PartitionLog, more_than: float) -> bool:
    """Return whether the share of what a pass could clean and none has is larger than that.

    Raise StorageError for damaged segments.
    """
    # Records held by an open transaction only make the share smaller, and to find them the log must be read.
    if dirty_ratio(log) <= more_than:
        return False
    return dirty_ratio(log, log.transactions().first_unstable_offset(log.end_offset)) > more_than


def compact(log: PartitionLog, *, now_ms: int, delete_retention_ms: int = DELETE_RETENTION_MS) -> int | None:
    """Compact the sealed segments, and return the offset up to which the log is clean then.

    None if no sealed segment lies before the first open transaction.

    Call `log.roll()` before to include what has been written so far. Killed at any point, the log
    opens with each group of segments either old or new. Raises StorageError for damaged segments.
    """
    transactions = log.transactions()
    limit = min(transactions.first_unstable_offset(log.end_offset), log.segments[-1].base_offset)
    sealed = [segment for segment in log.segments[:-1] if segment.base_offset < limit]
    if not sealed:
        return None
    cleaner = _Cleaner(transactions, limit, now_ms, now_ms + delete_retention_ms)
    first_dirty = _first_dirty(log)
    cleaner.note_latest(batch for batch in log.batches(first_dirty) if batch.base_offset < limit)
    for group in _groups(sealed, log.segment_bytes):
        log.swap_in(_write(log, group, cleaner), group)
    write_checkpoint(log.folder, CLEANED_TO, limit)
    return limit


def _first_dirty(log: PartitionLog) -> int:
    return min(max(read_checkpoint(log.folder, CLEANED_TO) or 0, log.start_offset), log.end_offset)


def _groups(segments: Sequence[Segment], segment_bytes: int) -> Iterator[list[Segment]]:
    """Return neighbours that fit one segment together, so that passes do not leave ever smaller files."""
    group: list[Segment] = []
    for segment in segments:
        if group and (
            sum(s.size for s in group) + segment.size > segment_bytes
            or segment.end_offset - group[0].base_offset > MAX_RELATIVE_OFFSET
        ):
            yield group
            group = []
        group.append(segment)
    yield group


def _write(log: PartitionLog, group: Sequence[Segment], cleaner: _Cleaner) -> Segment:
    """Return the group's kept batches as one whole `.cleaned` segment."""
    cleaned = Segment(log.folder, group[0].base_offset, CLEANED)
    try:
        cleaned.path.unlink(missing_ok=True)
        cleaned.open_for_append()
        for segment in group:
            for batch in segment.batches(segment.base_offset):
                raw = cleaner.clean(batch)
                if raw is not None:
                    newest = Batch(raw).max_timestamp
                    cleaned.append(raw, [Placed(raw, batch.base_offset, batch.last_offset, newest)])
        cleaned.write_indexes()
        cleaned.sync()
    except OSError as error:
        cleaned.close()
        cleaned.path.unlink(missing_ok=True)
        raise StorageError(
            f"{cleaned.path} cannot be written: {error.strerror}",
            hint="the log is as before; compaction needs free space for one more segment",
        ) from None
    finally:
        cleaned.close()
    return cleaned


@dataclass(slots=True)
class _Cleaner:
    """One pass: the latest offset of each key, and what is known of the transactions passed so far."""

    transactions: Transactions
    limit: int
    now_ms: int
    new_horizon_ms: int
    _latest: dict[bytes, int] = field(default_factory=dict)
    _with_data: set[int] = field(default_factory=set)

    def note_latest(self, batches: Iterator[Batch]) -> None:
        """Note each key's last offset; aborted records hide nothing."""
        for batch in batches:
            if batch.control or self._aborted(batch):
                continue
            for record in batch.records:
                if record.key is not None:
                    self._latest[record.key] = record.offset

    def clean(self, batch: Batch) -> bytes | None:
        """Return what is left of the next batch of the log, None if nothing is."""
        if batch.last_offset >= self.limit:
            return batch.raw
        if batch.control:
            # A marker stays while its transaction had data in this pass, and until its horizon after.
            if batch.end_marker is None or batch.producer_id in self._with_data:
                self._with_data.discard(batch.producer_id)
                return batch.raw
            if batch.delete_horizon_ms is None:
                return rebuild_batch(batch, batch.records, self.new_horizon_ms)
            return batch.raw if self.now_ms < batch.delete_horizon_ms else None
        if batch.transactional:
            self._with_data.add(batch.producer_id)
        kept = [] if self._aborted(batch) else [r for r in batch.records if self._stays(batch, r)]
        if not kept:
            return None
        tombstones = any(record.value is None for record in kept)
        horizon = self.new_horizon_ms if tombstones and batch.delete_horizon_ms is None else None
        if len(kept) == batch.count and horizon is None:
            return batch.raw
        return rebuild_batch(batch, kept, horizon)

    def _stays(self, batch: Batch, record: LogRecord) -> bool:
        if record.key is None or record.offset < self._latest.get(record.key, -1):
            return False
        if record.value is not None:
            return True
        horizon = batch.delete_horizon_ms
        return horizon is None or self.now_ms < horizon

    def _aborted(self, batch: Batch) -> bool:
        return batch.transactional and self.transactions.is_aborted(batch.producer_id, batch.base_offset)
