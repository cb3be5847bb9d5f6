"""The batches of aborted transactions among those that were read: no member gets them (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.protocol.batches import Batch
from kgroup.share.acquire import Extent


def aborted_extents(batches: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> list[Extent]:
    """Return batches of transactions given as producer id and first offset, without their markers."""
    waiting = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    open_ids: set[int] = set()
    extents = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last_offset:
            open_ids.add(waiting.pop()[0])
        marker = batch.end_marker if batch.control else None
        if marker is not None and not marker.committed:
            open_ids.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in open_ids:
            extents.append(Extent(batch.base_offset, batch.last_offset))
    return extents
