"""`replay-log --follow` and `capture` as they run for long: what comes is told, each day has its segment."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from kgroup.history.sources.capture import DAY_MS, PartitionCapture
from kgroup.history.sources.logs import segment_logs
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.cli.conftest import Kgroup
from tests.cli.live import Client


@pytest.mark.parametrize("output", ["table", "ndjson"])
def test_follow_tells_what_is_there_and_then_what_comes(cluster: Client, output: str) -> None:
    group = f"followed-{output}"
    cluster.commit(group, "orders", {0: 5})
    command = [sys.executable, "-m", "kgroup.cli.app", "replay-log", group, "--follow"]
    process = subprocess.Popen(
        [*command, "-b", cluster.bootstrap, "-o", output], stdout=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    assert process.stdout is not None
    try:
        until("offset 5", process.stdout)
        cluster.commit(group, "orders", {0: 9})
        line = until("offset 9", process.stdout)
        if output == "ndjson":
            event = json.loads(line)
            assert (event["event"], event["group_id"]) == ("committed", group)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def until(text: str, lines: Iterable[str]) -> str:
    """The first line that holds the text."""
    return next(line for line in lines if text in line)


def committed(offset: int, timestamp_ms: int) -> bytes:
    """A batch of one commit at a log offset."""
    key = r.encode_key(r.OffsetCommitKey(group="pay", topic="orders", partition=0))
    value = r.encode_value(r.OffsetCommitValue(offset=offset))
    return encode_batch([LogRecord(key, value, timestamp_ms=timestamp_ms)], base_offset=offset)


def test_a_capture_begins_a_segment_each_day_and_goes_on_in_the_last(kgroup: Kgroup, tmp_path: Path) -> None:
    midnight = 20_000 * DAY_MS
    times = [midnight - 2, midnight - 1, midnight, midnight + 5, midnight + DAY_MS]
    batches = [committed(n, ms) for n, ms in enumerate(times)]
    PartitionCapture.resume(tmp_path / "__consumer_offsets-3").append(b"".join(batches[:2]))
    PartitionCapture.resume(tmp_path / "__consumer_offsets-3").append(b"".join(batches[1:4]))
    PartitionCapture.resume(tmp_path / "__consumer_offsets-3").append(b"".join(batches[3:]))
    (log,) = segment_logs([tmp_path])
    assert [file.name for file in log.files] == [f"{base:020d}.log" for base in (0, 2, 4)]
    ran = kgroup("replay-log", "pay", "--files", str(tmp_path), "-o", "json")
    (covered,) = ran.document["data"]["coverage"]
    assert covered["from_the_start"] and covered["records"] == 5


def test_what_the_broker_no_longer_had_is_a_gap_of_the_capture(kgroup: Kgroup, tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-3")
    gaps: list[str] = []
    part.noticed = lambda name, gone: gaps.append(f"{name}: {gone.text}")
    part.append(committed(0, 1))
    part.append(committed(7, 2))
    assert gaps == ["__consumer_offsets-3: offsets 1 to 6"]
    ran = kgroup("replay-log", "--files", str(tmp_path), "-o", "json")
    (covered,) = ran.document["data"]["coverage"]
    assert (covered["missing"], covered["complete_from_offset"]) == (6, 7)
    assert "log-compacted" in {event["event"] for event in ran.document["data"]["events"]}
