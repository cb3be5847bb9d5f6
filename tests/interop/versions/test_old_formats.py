"""`__consumer_offsets` in the message format of Kafka 0.10.2, written by a 2.4 that was told to keep it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import require
from .broker import OldKafka
from .ground import COMMITTED, DYNAMIC, PARTITIONS, Ground, playing

pytestmark = pytest.mark.interop
OLD = {"log.message.format.version": "0.10.2"}


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    require("java", "javac", "mvn")
    with OldKafka("2.4", tmp_path / "broker", OLD) as kafka, playing(kafka, tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.timeout(1200)
def test_an_old_message_format_is_read_live_recorded_and_from_files(ground: Ground) -> None:
    assert {batch.partition(":")[0] for batch in ground.dumped_batches} == {"offset"}, (
        "the format is the old one"
    )
    count = len(ground.dumped_records)
    recording = str(ground.home / "recording")
    captured = ground.ask("capture", "--out", recording, "--once")
    assert captured.code == 0 and "recorded 0 batches" not in captured.err, captured
    segments = [part for path in ground.kafka.segments() for part in ("--files", str(path))]
    stories = []
    for source in ((), ("--files", recording), tuple(segments)):
        stats = ground.ask("offsets-topic", "stats", *source)
        assert (stats.code, stats.data["total"]["records"]) == (0, count), (source, stats)
        told = ground.ask("replay-log", *ground.groups, *source)
        assert (told.code, told.errors) == (0, []), (source, told)
        stories.append([(e["group_id"], e["event"], e["partition"]) for e in told.data["events"]])
    assert stories[0] == stories[1] == stories[2]
    assert {group for group, _, _ in stories[0]} == set(ground.groups)
    verified = ground.ask("replay-log", "--verify")
    assert (verified.code, {row["verdict"] for row in verified.data["groups"]}) == (0, {"same"}), verified
    offsets = ground.ask("describe", DYNAMIC).group(DYNAMIC)["offsets"]
    assert [row["committed_offset"] for row in offsets] == [COMMITTED] * PARTITIONS
