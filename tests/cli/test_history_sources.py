"""What replay-log, capture and offsets-topic read: spans of time, files, clusters, leaderless partitions."""

import json
import shutil
from pathlib import Path

import pytest

from kgroup.cli.output.times import parse_span
from kgroup.domain import offsets_partition_of
from kgroup.durations import iso
from kgroup.errors import ConfigError, ErrorCode, Unreachable
from kgroup.history.decode.scan import Scanner
from kgroup.history.sources.capture import PartitionCapture
from kgroup.history.sources.live import LiveTopic
from kgroup.protocol.batches import with_base_offset, with_max_timestamp
from tests.cli.conftest import Kgroup
from tests.cli.live import Client

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"
UPGRADE = INCIDENTS / "upgrade-and-back"
SEGMENT = next(UPGRADE.rglob("*.log"))
GROUP = "upgrade-and-back.2"
LAST = list(Scanner("x").headers(SEGMENT.read_bytes(), True))[-1].last_offset
AT_0113 = 1_795_309_980_000  # 2026-11-22T01:13:00Z


def test_a_span_that_ends_before_it_begins_is_refused_with_how_it_was_read() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_span("01:00", "23:00", AT_0113)
    assert "nothing lies between" in refused.value.message
    assert "--until 23:00 is 2026-11-21T23:00:00.000Z" in (refused.value.hint or "")


def test_an_hour_of_day_is_taken_for_the_last_one_and_that_is_said() -> None:
    span = parse_span(None, "04:00", AT_0113)
    assert span.text == "the start to 2026-11-21T04:00:00.000Z"
    assert span.note == "--until 04:00 is 2026-11-21T04:00:00.000Z (the last time it was that late, UTC)"
    assert parse_span("2h", "1h", AT_0113).note is None


@pytest.mark.parametrize("command", [("replay-log",), ("blame", GROUP)], ids=["replay-log", "blame"])
def test_a_span_that_holds_nothing_says_where_something_is(kgroup: Kgroup, command: tuple[str, ...]) -> None:
    files = ("--files", str(UPGRADE))
    ran = kgroup(*command, *files, "--until", "2020-01-01")
    assert "from the start to 2020-01-01T00:00:00.000Z" in ran.out
    assert "no event in this span: " in ran.out and "behind it, the first at 2026-" in ran.out
    span = kgroup(*command, *files, "--until", "2020-01-01", "-o", "json").document["data"]["span"]
    assert (span["events_before"], span["since"]) == (0, None) and span["events_after"] > 10
    ran = kgroup(*command, *files, "--since", "2035-01-01")
    assert "before it, the last at 2026-" in ran.out
    ran = kgroup(*command, *files, "--since", "2035-01-01", "--until", "2020-01-01")
    assert ran.code == 2 and "--since is the later one" in ran.err
    assert "is 20" in kgroup(*command, *files, "--since", "00:00").err


def test_what_a_shell_makes_of_a_glob_are_files_all_of_them(kgroup: Kgroup, tmp_path: Path) -> None:
    batches = SEGMENT.read_bytes()
    half = [header.position for header in Scanner("x").headers(batches, True)][7]
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(batches[:half])
    second.write_bytes(batches[half:])
    whole = kgroup("replay-log", "--files", str(SEGMENT)).out.splitlines()[1:]
    assert kgroup("replay-log", "--files", str(first), str(second)).out.splitlines()[1:] == whole
    ran = kgroup("blame", GROUP, "--files", str(first), str(second))
    assert ran.code == 0 and "last conversion" in ran.out
    ran = kgroup("replay-log", "--files", str(first), "--group", str(second))
    assert ran.code == 3, "an option names a group whatever is on the disk"
    assert kgroup("replay-log", str(second), "--files", str(tmp_path / "none.log")).code != 0


def two_folders(tmp_path: Path, *names: str) -> list[Path]:
    """Copies of two recorded clusters, each as a data folder of a broker, both with partition 6."""
    found = []
    for name, incident in zip(names, ("upgrade-and-back", "rolling-static-bounce"), strict=True):
        folder = tmp_path / name / "__consumer_offsets-6"
        folder.mkdir(parents=True)
        shutil.copy(next((INCIDENTS / incident).rglob("*.log")), folder)
        found.append(folder)
    return found


@pytest.mark.parametrize("ids", [("A", "B"), None], ids=["by-meta-properties", "by-their-records"])
@pytest.mark.parametrize("command", ["replay-log", "offsets-topic stats"])
def test_segments_of_two_clusters_are_refused(
    kgroup: Kgroup, tmp_path: Path, ids: tuple[str, str] | None, command: str
) -> None:
    here, there = two_folders(tmp_path, "one", "two")
    for folder, cluster in zip((here, there), ids or (), strict=bool(ids)):
        (folder.parent / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\n")
    ran = kgroup(*command.split(), "--files", str(tmp_path))
    assert ran.code == 2 and str(here) in ran.err and str(there) in ran.err
    assert ("are of different clusters: A and B" if ids else "hold different records at offset 0") in ran.err
    assert kgroup(*command.split(), "--files", str(here.parent)).code == 0


def test_replicas_of_one_cluster_are_one_log_however_they_were_compacted_and_compressed(
    kgroup: Kgroup, tmp_path: Path
) -> None:
    here, there = two_folders(tmp_path, "one", "two")
    shutil.rmtree(there)
    alone = kgroup("replay-log", "--files", str(here), "-o", "ndjson").out
    PartitionCapture.resume(tmp_path / "capture" / "__consumer_offsets-6").append(SEGMENT.read_bytes())
    assert kgroup("replay-log", "--files", str(tmp_path), "-o", "ndjson").out == alone


def test_copies_that_part_later_are_told_apart(kgroup: Kgroup, tmp_path: Path) -> None:
    """Clusters made from one backup begin alike."""
    here, there = two_folders(tmp_path, "one", "two")
    whole = SEGMENT.read_bytes()
    other = next((INCIDENTS / "deletion").rglob("*.log")).read_bytes()
    length = 12 + int.from_bytes(other[8:12], "big")
    last = with_base_offset(other[:length], 31, 0)
    (here / SEGMENT.name).write_bytes(
        whole + with_base_offset(whole[: 12 + int.from_bytes(whole[8:12])], 31, 0)
    )
    for file in there.iterdir():
        file.unlink()
    (there / SEGMENT.name).write_bytes(whole + last)
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 2 and "different records at offset 31" in ran.err


def test_copies_of_one_cluster_that_part_are_read_and_what_was_lost_is_named(
    kgroup: Kgroup, tmp_path: Path
) -> None:
    """After an unclean election the old leader's folder has records that the cluster has no more."""
    here, there = two_folders(tmp_path, "one", "two")
    for folder in (here, there):
        (folder.parent / "meta.properties").write_text("version=1\ncluster.id=A\n")
    whole = SEGMENT.read_bytes()
    headers = list(Scanner("x").headers(whole, True))
    cut, end = headers[3].position, headers[3].base_offset
    for file in there.iterdir():
        file.unlink()
    (there / SEGMENT.name).write_bytes(whole[:cut] + with_base_offset(whole[: headers[0].end], end, 99))
    for command in (("replay-log",), ("blame", GROUP), ("replay-log", "--raw"), ("offsets-topic", "stats")):
        ran = kgroup(*command, "--files", str(tmp_path))
        assert ran.code == 5, command
        assert f"not read: {LAST - end + 1} records in offsets {end} to {LAST}" in ran.err + ran.out
    errors = kgroup("replay-log", "--files", str(tmp_path), "-o", "json").document["errors"]
    assert [(error["item"], error["code"]) for error in errors] == [(str(here / SEGMENT.name), "NOT_SEEN")]


def test_a_capture_and_the_compacted_folder_of_its_broker_tell_what_the_capture_tells(
    kgroup: Kgroup, tmp_path: Path
) -> None:
    whole = SEGMENT.read_bytes()
    PartitionCapture.resume(tmp_path / "all" / "capture" / "__consumer_offsets-6").append(whole)
    folder = tmp_path / "all" / "broker" / "__consumer_offsets-6"
    folder.mkdir(parents=True)
    headers = list(Scanner("x").headers(whole, True))
    kept = [whole[h.position : h.end] for h in (headers[0], *headers[-2:])]
    later = with_base_offset(kept[0], LAST + 1, 0)
    (folder / SEGMENT.name).write_bytes(b"".join([*kept, later]))
    alone = kgroup("replay-log", "--files", str(tmp_path / "all" / "capture"), "-o", "ndjson").out
    both = kgroup("replay-log", "--files", str(tmp_path / "all"), "-o", "ndjson")
    assert both.code == 0 and both.out.startswith(alone.rstrip("\n").rpartition("\n")[0])


def test_a_moment_before_the_log_begins_is_unknown_and_not_empty(kgroup: Kgroup, tmp_path: Path) -> None:
    whole = SEGMENT.read_bytes()
    first = list(Scanner("x").headers(whole, True))[3]
    tail = tmp_path / "__consumer_offsets-6" / f"{first.base_offset:020d}.log"
    tail.parent.mkdir()
    tail.write_bytes(whole[first.position :])
    for at in ("2026-01-01", str(first.base_offset - 1)):
        for names in ((), (GROUP,), ("none",)):
            ran = kgroup("replay-log", *names, "--files", str(tail), "--at", at, "-o", "json")
            assert ran.code == 5 and ran.document["data"]["groups"] == []
            assert [error["code"] for error in ran.document["errors"]] == ["NOT_SEEN"]
            assert f"begins at offset {first.base_offset} (" in ran.err
    ran = kgroup("replay-log", "--files", str(SEGMENT), "--at", "2026-01-01", "-o", "json")
    assert ran.code == 0, "this log begins with the topic: there was nothing"
    assert kgroup("replay-log", GROUP, "--files", str(tail), "--at", "2100-01-01").code == 0


def test_a_batch_with_a_time_to_come_hides_nothing_of_the_state(kgroup: Kgroup, tmp_path: Path) -> None:
    whole = SEGMENT.read_bytes()
    headers = list(Scanner("x").headers(whole, True))
    ahead, end = headers[1], headers[-1].max_timestamp_ms
    file = tmp_path / SEGMENT.parent.name / SEGMENT.name
    file.parent.mkdir()
    wrong = with_max_timestamp(whole[ahead.position : ahead.end], 4_070_908_800_000)
    file.write_bytes(whole[: ahead.position] + wrong + whole[ahead.end :])
    at = str(iso(end))
    ran = kgroup("replay-log", "--files", str(file), "--at", at, "-o", "json")
    expected = kgroup("replay-log", "--files", str(SEGMENT), "--at", at, "-o", "json").document["data"]
    assert ran.document["data"]["groups"] == expected["groups"]
    assert "times go back: 1 batch that is stamped later comes before" in ran.err
    assert f"at offset {ahead.base_offset} (2099-01-01" in ran.err


LOST = "group-of-a-lost-partition"
DEAD = offsets_partition_of(LOST, 4)


@pytest.fixture(params=["leaderless", "mute"])
def lost(request: pytest.FixtureRequest, cluster: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """One partition of the offsets topic cannot be read; the name of a group in another one."""
    other = next(f"seen-{n}" for n in range(99) if offsets_partition_of(f"seen-{n}", 4) != DEAD)
    cluster.commit(other, "orders", {0: 5})
    cluster.commit(LOST, "orders", {0: 5})
    refresh = LiveTopic.refresh

    def without_leader(self: LiveTopic) -> None:
        refresh(self)
        self.leaders[DEAD] = -1 if request.param == "leaderless" else 77
        if request.param == "mute":
            self._mute[77] = Unreachable("broker 77 did not answer in time")

    monkeypatch.setattr(LiveTopic, "refresh", without_leader)
    monkeypatch.setattr(LiveTopic, "try_again", lambda self: None)
    return other


@pytest.mark.parametrize(
    "command",
    [
        ("replay-log", "-o", "csv"),
        ("replay-log", "--raw"),
        ("replay-log", "--at", "2100-01-01"),
        ("offsets-topic", "stats"),
        ("offsets-topic", "top"),
    ],
    ids=" ".join,
)
def test_one_partition_that_cannot_be_read_costs_itself_only(
    on_cluster: Kgroup, lost: str, command: tuple[str, ...]
) -> None:
    ran = on_cluster(*command)
    assert ran.code == 5 and f"__consumer_offsets-{DEAD}" in ran.err
    assert lost in ran.out or "stats" in command
    assert LOST not in ran.out


def test_a_group_in_it_is_not_called_missing(on_cluster: Kgroup, lost: str) -> None:
    ran = on_cluster("replay-log", LOST, lost, "-o", "json")
    assert ran.code == 5
    unread = {c["partition"]: c["unread"] for c in ran.document["data"]["coverage"]}
    assert unread[DEAD] and not any(why for partition, why in unread.items() if partition != DEAD)
    told = next(error for error in ran.document["errors"] if error["item"] == LOST)
    assert told["hint"] == "not all was read, so it may be there"
    assert on_cluster("replay-log", LOST).code == 7, "nothing was read: that is no partial answer"


def test_verify_compares_what_was_read(on_cluster: Kgroup, lost: str) -> None:
    ran = on_cluster("replay-log", lost, LOST, "--verify", "-o", "json")
    verdicts = {row["group_id"]: row["verdict"] for row in ran.document["data"]["groups"]}
    assert ran.code == 5 and verdicts == {lost: "same", LOST: "not compared"}


def test_a_capture_records_the_others_and_says_so(on_cluster: Kgroup, lost: str, tmp_path: Path) -> None:
    ran = on_cluster("capture", "--once", "--out", str(tmp_path / "c"))
    assert ran.code == 5 and f"partition {DEAD} was not read" in ran.err
    assert f"NOT READ: partition {DEAD}" in ran.err.splitlines()[-1]
    assert lost in json.dumps(on_cluster("replay-log", "--files", str(tmp_path / "c"), "-o", "json").document)


def test_a_capture_says_what_it_recorded(on_cluster: Kgroup, cluster: Client, tmp_path: Path) -> None:
    cluster.commit("recorded", "orders", {0: 5})
    ran = on_cluster("capture", "--once", "--out", str(tmp_path / "c"))
    assert ran.code == 0 and ran.out == ""
    assert " bytes of 4 partitions into " in ran.err.splitlines()[-1]
    assert on_cluster("capture", "--once", "--quiet", "--out", str(tmp_path / "c")).err == ""


def test_a_partition_without_a_leader_is_called_that(cluster: Client) -> None:
    topic = LiveTopic(cluster.transport, 5.0)
    topic.leaders = dict.fromkeys(topic.leaders, -1)
    topic.refresh = lambda: None  # type: ignore[method-assign]
    with pytest.raises(Exception, match="no broker leads it") as refused:
        topic.bounds(0)
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE  # type: ignore[attr-defined]
