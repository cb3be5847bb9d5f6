"""State batches of two sources as one: Kafka's PersisterStateBatchCombiner."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from kgroup.protocol.share_state_records import StateBatch

_Span: TypeAlias = tuple[int, int, int, int]
"""First offset, last offset, delivery count, delivery state: in the order in which Kafka sorts them."""


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return the batches from `start_offset` on (-1: of all offsets), none overlapping another.

    Of two that overlap, the one that was delivered more often counts, then the one in the higher state.
    """
    spans = [
        (max(batch.first_offset, start_offset), batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in batches
        if batch.last_offset >= start_offset
    ]
    return tuple(
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, count, state in (_merged(spans) if len(spans) > 1 else spans)
    )


def _merged(spans: list[_Span]) -> list[_Span]:
    """Return the spans in order, without overlaps, equal neighbours merged."""
    heapify(spans)
    done: list[_Span] = []
    while spans:
        span = heappop(spans)
        if spans and spans[0][0] <= span[1]:
            for piece in _pieces(span, heappop(spans)):
                heappush(spans, piece)
        elif done and done[-1][1] + 1 == span[0] and done[-1][2:] == span[2:]:
            done[-1] = (done[-1][0], *span[1:])
        else:
            done.append(span)
    return done


def _pieces(one: _Span, other: _Span) -> Iterable[_Span]:
    """Cut the overlap of two spans out of the lesser one; `one` is sorted before `other`."""
    first, end = one[:2]
    if other[2:] <= one[2:]:
        yield one
        if other[1] > end:
            yield (end + 1, *other[1:])
        return
    yield other
    if first < other[0]:
        yield (first, other[0] - 1, *one[2:])
    if other[1] < end:
        yield (other[1] + 1, *one[1:])
