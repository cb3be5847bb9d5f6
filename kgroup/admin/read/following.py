"""The history of groups as it grows: what is there, then what is new, poll by poll."""

from collections.abc import Iterator
from dataclasses import dataclass

from kgroup.admin.read.source import Chosen, Source
from kgroup.errors import KgroupError
from kgroup.history.deliveries import DeliveryReader
from kgroup.history.fold.events import Event
from kgroup.history.replay import Coverage, Reader, in_order

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class News:
    """What one poll found: events by time, what of each log was read so far, and the logs not read."""

    events: list[Event]
    coverage: list[Coverage]
    failures: list[tuple[str, KgroupError]]


def follow(source: Source, selection: Chosen, for_s: float) -> Iterator[News]:
    """Yield what a cluster's logs hold, then what is new at each poll, for so many seconds.

    A log that cannot be read is tried again at each poll.
    """
    assert source.admin is not None
    readers = [
        Reader(
            log,
            topic_names=source.topic_names,
            names=selection.names,
            wanted=selection.wanted,
            runs=selection.collapse,
        )
        for log in source.logs
    ]
    shared: list[DeliveryReader] = []
    for _ in source.admin.retry.looks(_POLL_S, for_s):
        source.try_again()
        events = [event for reader in readers for event in in_order(reader.advance())]
        shared = shared or source.delivery_readers(readers, selection)
        events += [event for reader in shared for event in in_order(reader.advance())]
        events.sort(key=lambda event: event.timestamp_ms)
        yield News(events, [reader.coverage for reader in readers], source.failures)
