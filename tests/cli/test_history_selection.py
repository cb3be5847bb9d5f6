"""What a selection keeps of a story: groups, spans of time, kinds of events, and what it leaves out."""

import pytest

from kgroup.cli.history_selection import Selection
from kgroup.history.events import Event, Kind


def event(offset: int, kind: Kind = Kind.COMMITTED, timestamp_ms: int = 1_000, group: str = "pay") -> Event:
    return Event(
        kind=kind,
        group=group,
        protocol="classic",
        log_partition=0,
        offset=offset,
        timestamp_ms=timestamp_ms,
        end_timestamp_ms=timestamp_ms,
        detail="",
    )


def test_choosing_from_a_long_story_compares_no_event_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a story of a million events lacks is told whatever was asked for, at no cost by the square."""
    compared = []
    monkeypatch.setattr(Event, "__eq__", lambda one, other: compared.append(one) or one is other)
    gap = event(0, Kind.LOG_COMPACTED, group="")
    story = [gap, *(event(n, Kind.REWOUND if n % 2 else Kind.COMMITTED) for n in range(1, 101))]
    kept = Selection.of(kinds="rewound").chosen(story)
    assert [e.offset for e in kept] == [0, *range(1, 101, 2)]
    assert compared == []
