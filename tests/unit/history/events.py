"""Events for tests of what reads them."""

from __future__ import annotations

from kgroup.history.fold.events import Event, Kind


def event(
    kind: Kind,
    *,
    offset: int = 1,
    timestamp_ms: int = 1,
    epoch: int = -1,
    protocol: str = "consumer",
    suspicious: bool = False,
) -> Event:
    """An event of the group g, in the first partition of the log."""
    return Event(
        kind=kind,
        group="g",
        protocol=protocol,
        log_partition=0,
        offset=offset,
        timestamp_ms=timestamp_ms,
        detail="",
        epoch=epoch,
        suspicious=suspicious,
    )
