"""What a selection keeps of a story: groups, spans of time, kinds of events, and what it leaves out."""

import zlib
from pathlib import Path

import jsonschema
import pytest

from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.schemas import schema_for
from kgroup.history.fold.events import Event, Kind
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.cli.conftest import Kgroup


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


def commit(offset: int) -> tuple[bytes, bytes]:
    key = r.encode_key(r.OffsetCommitKey(group="pay", topic="orders", partition=0))
    value = r.encode_value(r.OffsetCommitValue(offset=offset))
    assert value is not None
    return key, value


def message_without_time(offset: int) -> bytes:
    """A commit in message format 0, which has no timestamps."""
    key, value = commit(offset)
    body = b"\0\0" + len(key).to_bytes(4, "big") + key + len(value).to_bytes(4, "big") + value
    size = 4 + len(body)
    return offset.to_bytes(8, "big") + size.to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def test_a_pattern_means_what_it_means_to_every_command() -> None:
    """The group whose id it is, letter by letter, and those that match."""
    selection = Selection.of(groups=("tmp[1]", "pay"))
    assert selection.names is None and selection.wanted is not None
    meant = [group for group in ("tmp[1]", "tmp1", "tmp2", "pay", "payer") if selection.wanted(group)]
    assert meant == ["tmp[1]", "tmp1", "pay"]


IN_2026 = 1_772_680_000_000
IN_2020 = ("--until", "2020-01-01")
SINCE_2020 = ("--since", "2020-01-01")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A segment of two commits without a time, and of one made in 2026."""
    batch = encode_batch([LogRecord(*commit(2), timestamp_ms=IN_2026)], base_offset=2)
    segment = tmp_path / f"{0:020d}.log"
    segment.write_bytes(message_without_time(0) + message_without_time(1) + batch)
    return segment


@pytest.mark.parametrize("output", ["table", "ndjson"])
def test_raw_shows_records_without_a_time(kgroup: Kgroup, mixed: Path, output: str) -> None:
    ran = kgroup("replay-log", "--raw", "--files", str(mixed), "-o", output)
    assert ran.code == 0 and ran.err == ""
    lines = ran.out.splitlines()
    assert len(lines) == 3
    assert ('"timestamp":null' if output == "ndjson" else "  -  OffsetCommit") in lines[0]


@pytest.mark.parametrize(("span", "offsets"), [(SINCE_2020, ["0:2"]), (IN_2020, [])], ids=["since", "until"])
def test_raw_in_a_span_says_what_has_no_time(
    kgroup: Kgroup, mixed: Path, span: tuple[str, str], offsets: list[str]
) -> None:
    ran = kgroup("replay-log", "--raw", "--files", str(mixed), *span, "--quiet")
    assert [line.split()[0] for line in ran.out.splitlines()] == offsets
    assert ran.code == 5, "they may be of the span: the answer is not known to be whole"
    assert "2 records without a time are excluded" in ran.err


@pytest.mark.parametrize(("span", "after"), [(SINCE_2020, 0), (IN_2020, 1)], ids=["since", "until"])
def test_events_without_a_time_are_in_no_span_and_counted(
    kgroup: Kgroup, mixed: Path, span: tuple[str, str], after: int
) -> None:
    ran = kgroup("replay-log", "--all-commits", "--files", str(mixed), *span, "-o", "json")
    jsonschema.validate(ran.document, schema_for("replay-log"))
    told = ran.document["data"]["span"]
    assert (told["events_before"], told["events_after"]) == (0, after)
    assert told["events_without_time"] == 2
    assert all(e["timestamp_ms"] == IN_2026 for e in ran.document["data"]["events"])
    assert ran.code == 5 and "2 events without a time are excluded" in ran.err


def test_no_cause_is_told_to_be_missing_where_events_have_no_time(kgroup: Kgroup, mixed: Path) -> None:
    mixed.write_bytes(message_without_time(0) + message_without_time(1))
    ran = kgroup("blame", "pay", "--files", str(mixed), *SINCE_2020)
    assert ran.code == 5 and "1 event without a time is excluded" in ran.err
    assert "no event in this span: 1 without a time" in ran.out


def test_a_story_without_a_span_has_room_for_events_without_a_time(kgroup: Kgroup, mixed: Path) -> None:
    ran = kgroup("replay-log", "--all-commits", "--files", str(mixed), "-o", "json")
    assert ran.code == 0
    assert [e["timestamp"] for e in ran.document["data"]["events"]].count(None) > 1
