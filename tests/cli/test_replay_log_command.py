"""replay-log, blame, offsets-topic and capture: views, filters, exit codes, documents."""

import json
from pathlib import Path

import jsonschema
import pytest

from kgroup.cli.output.times import day_and_clock, parse_time
from kgroup.cli.schemas import schema_for
from kgroup.durations import iso, utc
from kgroup.errors import ConfigError
from kgroup.protocol import share_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.group_records import encode_key, encode_value
from tests.cli.conftest import Kgroup

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"
UPGRADE = str(INCIDENTS / "upgrade-and-back")
GROUP = "upgrade-and-back.2"
SHARE, STATE = str(INCIDENTS / "share-group"), "__share_group_state"


def test_the_timeline_begins_with_what_is_complete_and_names_causes(kgroup: Kgroup) -> None:
    ran = kgroup("replay-log", GROUP, "--files", UPGRADE)
    assert ran.code == 0
    first, *rest = ran.out.splitlines()
    assert first.endswith("31 records · complete: nothing compacted, nothing missing")
    assert any("└ the downgrade at offset 20" in line for line in rest)
    assert any("orders:2-3 had no owner for" in line for line in rest)


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay-log", "--files", UPGRADE),
        ("offsets-topic", "stats", "--files", UPGRADE),
        ("offsets-topic", "top", "--files", UPGRADE),
    ],
)
def test_without_headers_there_are_the_rows_of_the_csv(kgroup: Kgroup, arguments: tuple[str, ...]) -> None:
    rows = kgroup(*arguments, "--no-headers", "-o", "csv").out.splitlines()
    assert len(kgroup(*arguments, "--no-headers").out.splitlines()) == len(rows) > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay-log", "--files", UPGRADE),
        ("replay-log", "--files", UPGRADE, "--at", "19"),
        ("blame", GROUP, "--files", UPGRADE),
        ("replay-log", "--files", SHARE),
        ("replay-log", "--files", SHARE, "--at", "19"),
        ("blame", "queue", "--files", SHARE),
        ("offsets-topic", "stats", "--files", UPGRADE),
        ("offsets-topic", "top", "--files", UPGRADE),
        ("offsets-topic", "decode", "0003000370617900", "--value", "0000000000070000"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_documents_fit_their_schemas(kgroup: Kgroup, arguments: tuple[str, ...]) -> None:
    ran = kgroup(*arguments, "-o", "json")
    name = " ".join(arguments[:2]) if arguments[0] == "offsets-topic" else arguments[0]
    jsonschema.validate(ran.document, schema_for(name))
    assert ran.code == 0 and ran.document["status"] == "ok"


@pytest.mark.parametrize("argv", [("replay-log",), ("replay-log", "--at", "1"), ("blame",)])
def test_of_a_share_group_is_said_that_its_deliveries_were_not_read(
    argv: tuple[str, ...], kgroup: Kgroup, tmp_path: Path
) -> None:
    """ShareGroupMetadata (type 11) alone: what was delivered is not known, so not code 0."""
    key, value = r.ShareGroupMetadataKey(group_id="pay"), r.ShareGroupMetadataValue(epoch=5)
    segment = tmp_path / "__consumer_offsets-6" / "00000000000000000000.log"
    segment.parent.mkdir()
    record = LogRecord(encode_key(key), encode_value(value), offset=0, timestamp_ms=1)
    segment.write_bytes(encode_batch([record]))
    ran = kgroup(*argv, "pay", "--files", str(segment.parent), "-o", "json")
    assert ran.code == 5, ran.err
    assert [(e["code"], e["item"]) for e in ran.errors] == [("NOT_SEEN", "pay")]
    assert "__share_group_state" in ran.errors[0]["message"]


def test_what_a_share_group_did_with_records_comes_from_its_other_topic(kgroup: Kgroup) -> None:
    ran = kgroup("replay-log", "queue", "--files", SHARE, "--events", "records-archived", "-o", "ndjson")
    given_up = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0, ran.err
    assert [(e["topic"], e["records"]) for e in given_up] == [
        (STATE, [{"topic": "jobs", "partition": 0, "first_offset": n, "last_offset": n, "deliveries": times}])
        for n, times in ((5, 1), (7, 3))
    ]
    both = kgroup("replay-log", "queue", "--files", SHARE, "-o", "json").document["data"]
    assert {c["topic"] for c in both["coverage"]} == {"__consumer_offsets", STATE}
    assert {e["topic"] for e in both["events"]} == {"__consumer_offsets", STATE}
    text = kgroup("blame", "queue", "--files", SHARE).out
    assert "last given up: " in text and "start offset 7 → 0" in text


def test_the_state_of_a_share_group_has_its_start_offsets_and_deliveries(kgroup: Kgroup) -> None:
    run = ("replay-log", "queue", "--files", SHARE, "--at", "18")
    (group,) = kgroup(*run, "-o", "json").document["data"]["groups"]
    assert (group["type"], group["state"], group["group_epoch"]) == ("share", "Stable", 4)
    (row,) = group["offsets"]
    assert (row["committed_offset"], row["lag"]) == (7, None)
    assert [tuple(each.values()) for each in row["deliveries"]] == [
        (7, 7, "Archived", 3),
        (8, 29, "Acknowledged", 2),
    ]
    assert "jobs-0: 7-7 Archived, delivered 3×; 8-29 Acknowledged, delivered 2×" in kgroup(*run).out


def test_raw_prints_the_records_of_both_topics(kgroup: Kgroup) -> None:
    ran = kgroup("replay-log", "queue", "--files", SHARE, "--raw", "-o", "ndjson")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["topic"] for row in rows] == ["__consumer_offsets"] * 44 + [STATE] * 10
    assert rows[-1]["type_name"] == "ShareSnapshot" and rows[-1]["value"] is None
    one = kgroup("replay-log", "queue", "--files", f"{SHARE}/__consumer_offsets-1", "--raw")
    assert one.code == 5 and STATE in one.err


def test_the_topic_of_deliveries_alone_is_read_too(kgroup: Kgroup) -> None:
    ran = kgroup("replay-log", "queue", "--files", f"{SHARE}/{STATE}-1", "-o", "json")
    assert ran.code == 0 and len(ran.document["data"]["events"]) > 10
    assert kgroup("replay-log", "other", "--files", f"{SHARE}/{STATE}-1").code == 3


def test_events_have_the_fields_scripts_rely_on(kgroup: Kgroup) -> None:
    lines = kgroup("replay-log", "--files", UPGRADE, "-o", "ndjson").out.splitlines()
    events = [json.loads(line) for line in lines]
    up = next(event for event in events if event["event"] == "upgraded")
    assert (up["type"], up["group_epoch"], up["generation"]) == ("consumer", 2, None)
    assert up["timestamp"] == iso(up["timestamp_ms"]) and up["partition"] == 6
    assert up["schema"] == "kgroup/replay-log@2"


def test_the_state_at_an_offset_is_told_as_describe_tells_it(kgroup: Kgroup) -> None:
    (group,) = kgroup("replay-log", "--files", UPGRADE, "--at", "19", "-o", "json").document["data"]["groups"]
    assert (group["type"], group["state"], group["group_epoch"]) == ("consumer", "Stable", 2)
    assert [len(m["assignment"][0]["partitions"]) for m in group["members"]] == [2, 2]
    assert {o["committed_offset"] for o in group["offsets"]} == {50}


def test_the_epochs_an_owner_may_commit_at_are_told(kgroup: Kgroup) -> None:
    """AE-34: a commit is taken from the partition's assignment epoch up to its owner's member epoch."""
    run = ("replay-log", "--files", UPGRADE, "--at", "19", "-o")
    (group,) = kgroup(*run, "json").document["data"]["groups"]
    epochs = {m["member_id"]: m["member_epoch"] for m in group["members"]}
    ranges = {(o["partition"], o["assigned_epoch"], epochs[o["member_id"]]) for o in group["offsets"]}
    assert ranges == {(0, 1, 2), (1, 1, 2), (2, 2, 2), (3, 2, 2)}, "two kept since generation 1, two moved"
    assert "ASSIGNED-EPOCH" in kgroup(*run, "wide").out
    assert "KIP-1251" in kgroup("explain", "STALE_MEMBER_EPOCH").out


def test_raw_prints_every_record(kgroup: Kgroup) -> None:
    rows = [
        json.loads(x)
        for x in kgroup("replay-log", "--files", UPGRADE, "--raw", "-o", "ndjson").out.splitlines()
    ]
    assert [row["offset"] for row in rows] == list(range(31))
    assert rows[2]["value"]["topic"] == "orders"
    text = kgroup("replay-log", "--files", UPGRADE, "--raw").out.splitlines()
    assert "GroupMetadata" in text[0] and "tombstone" in text[6]


def test_filters(kgroup: Kgroup) -> None:
    ran = kgroup(
        "replay-log", "upgrade-*", "--files", UPGRADE, "--events", "upgraded,downgraded", "-o", "csv"
    )
    assert [line.split(",")[6] for line in ran.out.splitlines()] == ["event", "upgraded", "downgraded"]
    assert kgroup("replay-log", "--files", UPGRADE, "--instance", "pay-0", "-o", "name").out == f"{GROUP}\n"
    assert "no event matches" in kgroup("replay-log", "--files", UPGRADE, "--instance", "nobody").out


def test_a_group_without_records_is_not_found(kgroup: Kgroup) -> None:
    ran = kgroup("replay-log", "nobody", "--files", UPGRADE)
    assert ran.code == 3 and "no record of group nobody" in ran.err
    assert "kgroup offsets-topic top shows which are in it" in ran.err


@pytest.mark.parametrize(
    "options", [("--events", "exploded"), ("--at", "soon"), ("--follow",), ("--raw", "--at", "1")]
)
def test_options_that_make_no_sense_are_usage_errors(kgroup: Kgroup, options: tuple[str, ...]) -> None:
    assert kgroup("replay-log", "--files", UPGRADE, *options).code == 2


def test_damage_is_named_and_the_rest_is_told(kgroup: Kgroup, tmp_path: Path) -> None:
    whole = next(Path(UPGRADE).rglob("*.log")).read_bytes()
    segment = tmp_path / f"{0:020d}.log"
    segment.write_bytes(whole[:-10])
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 5 and "cut short" in ran.err and str(segment) in ran.err
    assert "downgraded" in ran.out
    segment.write_bytes(b"no segment at all, only text\n" * 20)
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 1 and "not a segment" in ran.err


def test_a_folder_of_something_else_is_refused(kgroup: Kgroup, tmp_path: Path) -> None:
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 1 and "holds no segment" in ran.err


def test_the_page_holds_everything_and_ends_no_script_early(kgroup: Kgroup, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert kgroup("replay-log", "--files", UPGRADE, "--html", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
    data = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
    (group,) = data["groups"]
    assert group["name"] == GROUP and {lane["member"] for lane in group["lanes"]} >= {"pay-0"}
    assert text.count("</script>") == 2


def test_blame_says_what_and_shows_the_records(kgroup: Kgroup) -> None:
    ran = kgroup("blame", "reset-by-hand.12", "--files", str(INCIDENTS / "reset-by-hand"), "-o", "json")
    blames = {b["about"]: b for b in ran.document["data"]["groups"][0]["blames"]}
    assert blames["rewind"]["event"]["proven"] and blames["rewind"]["evidence"]
    text = kgroup("blame", GROUP, "--files", UPGRADE).out
    assert "because: the downgrade at offset 20" in text and "no rewind and no deletion" in text


def test_the_embedded_cluster_is_replayed_verified_and_captured(
    kgroup: Kgroup, cluster: "object", tmp_path: Path
) -> None:
    where = ("-b", cluster.bootstrap)  # type: ignore[attr-defined]
    ran = kgroup("replay-log", "--verify", *where, "-o", "json")
    jsonschema.validate(ran.document, schema_for("replay-log"))
    assert ran.code == 0, ran.out
    assert kgroup("capture", "--once", "--out", str(tmp_path / "kept"), *where).code == 0


def test_a_capture_goes_on_where_it_stopped_and_cuts_a_torn_tail(tmp_path: Path) -> None:
    from kgroup.history.sources.capture import PartitionCapture

    data = next(Path(UPGRADE).rglob("*.log")).read_bytes()
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-6")
    assert part.append(data[:3000]) and part.path is not None
    with part.path.open("ab") as file:
        file.write(b"half a batch")
    again = PartitionCapture.resume(tmp_path / "__consumer_offsets-6")
    assert again.next_offset == part.next_offset
    gaps: list[object] = []
    again.noticed = lambda *gap: gaps.append(gap)
    again.append(data)
    last = PartitionCapture.resume(tmp_path / "__consumer_offsets-6")
    assert (last.next_offset, gaps) == (31, [])
    assert len(list(tmp_path.rglob("*.log"))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T03:00", "2026-03-01T03:00:00.000Z"),
        ("2026-03-01T03:00+01:00", "2026-03-01T02:00:00.000Z"),
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        ("03:00", "2026-03-05T03:00:00.000Z"),
        ("23:59", "2026-03-04T23:59:00.000Z"),
        ("2h", "2026-03-05T10:00:00.000Z"),
        ("30m ago", "2026-03-05T11:30:00.000Z"),
        ("1772680000123", "2026-03-05T03:06:40.123Z"),
    ],
)
def test_moments_can_be_given_in_many_ways(text: str, expected: str) -> None:
    assert iso(parse_time(text, parse_time("2026-03-05T12:00"))) == expected


@pytest.mark.parametrize("text", ["", "later", "25:00", "2026-13-01", "-3h"])
def test_anything_else_is_no_moment(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_time(text)


def test_times_out_of_all_bounds_are_shown_as_unknown() -> None:
    assert iso(-1) is None and iso(2**62) is None and iso(253_402_300_800_000) is None
    assert (utc(0), utc(2**62)) == ("1970-01-01T00:00:00Z", f"{2**62} ms")
    assert day_and_clock(2**62) == ("-", "-")
