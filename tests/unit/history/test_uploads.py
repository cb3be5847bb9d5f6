"""A capture at a URL: what is put there, when, and how the next one goes on."""

from __future__ import annotations

import pytest

from kgroup.errors import StorageChanged, StorageError, StorageUnreachable
from kgroup.history.raw import raw_rows
from kgroup.history.replay import replay
from kgroup.history.sources import capture as capture_module
from kgroup.history.sources.capture import DAY_MS, Capture, resume
from kgroup.history.sources.folders import RemoteFolder
from kgroup.history.sources.logs import logs_of, segments_of, topic_names_near
from kgroup.storage.location import Location
from kgroup.storage.objects import Objects
from kgroup.storage.options import StorageOptions
from tests.s3 import S3Server

from .incidents import KAFKA, log_of, text_of
from .logs import MemoryLog
from .test_capture import ID, NOW, Topic, one


@pytest.fixture
def at(s3: S3Server) -> RemoteFolder:
    place = Location.parse(f"s3://{s3.bucket()}/history")
    return RemoteFolder(place, StorageOptions.of(s3.options, 10))


def captured(topic: Topic, at: RemoteFolder) -> Capture:
    return Capture(topic, at, lambda name, gone: None)  # type: ignore[arg-type]


def keys(s3: S3Server, at: RemoteFolder) -> list[str]:
    return [key.removeprefix("history/__consumer_offsets-") for key in s3.keys(at.place.host) if "-" in key]


def test_batches_wait_for_an_object_and_the_next_capture_begins_behind_it(
    s3: S3Server, at: RemoteFolder
) -> None:
    topic = Topic({0: [one(0), one(1)], 3: [one(0)]})
    capture = captured(topic, at)
    assert capture.poll() == 3 and keys(s3, at) == []
    assert [part.batches for part in capture.parts.values()] == [0, 0], "nothing is said to be kept"
    capture.flush()
    assert keys(s3, at) == [f"0/{0:020d}.log", f"3/{0:020d}.log"]
    topic.logs[0].append(one(2))
    assert capture.poll() == 1
    assert captured(topic, at).poll() == 1, "what was not put there is asked for again"
    capture.flush()
    capture.flush()
    assert keys(s3, at) == [f"0/{0:020d}.log", f"0/{2:020d}.log", f"3/{0:020d}.log"]
    assert captured(topic, at).poll() == 0
    logs = logs_of(segments_of([at.place], at.options))
    assert [row["offset"] for row in raw_rows(logs[0])] == [0, 1, 2]


def test_an_object_is_put_when_it_is_full_and_when_a_day_ends(
    s3: S3Server, at: RemoteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_module, "OBJECT_BYTES", 2 * len(one(0)))
    captured(Topic({0: [one(n) for n in range(5)]}), at).poll()
    assert keys(s3, at) == [f"0/{0:020d}.log", f"0/{2:020d}.log"]
    captured(Topic({0: [one(n, NOW + n // 6 * DAY_MS) for n in range(7)]}), at).poll()
    assert keys(s3, at) == [f"0/{n:020d}.log" for n in (0, 2, 4)]


@pytest.mark.parametrize("name", KAFKA)
def test_what_was_recorded_at_a_url_tells_the_same_story(name: str, at: RemoteFolder) -> None:
    data = b"".join(file.read_bytes() for file in log_of(name).files)
    part = resume(at, "__consumer_offsets-0")
    part.append(data)
    part.flush()
    assert text_of(replay(logs_of(segments_of([at.place], at.options)))) == text_of(replay([MemoryLog(data)]))


def test_topic_names_are_kept_beside(at: RemoteFolder) -> None:
    topic = Topic({0: [one(0)]})
    topic.learned = {ID: "orders"}
    capture = captured(topic, at)
    capture.poll()
    capture.flush()
    look = segments_of([at.place], at.options)
    assert topic_names_near([at.place], look.neighbours) == {ID: "orders"}


def test_a_damaged_last_object_is_not_gone_on_behind(s3: S3Server, at: RemoteFolder) -> None:
    s3.put(f"{at.place}/__consumer_offsets-0/{0:020d}.log", one(0)[:-1] + b"\xff" + one(1))
    with pytest.raises(StorageError, match="checksum of the batch at offset 0 is wrong"):
        captured(Topic({0: [one(0)]}), at)


def test_a_store_that_goes_away_ends_the_capture(at: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic({0: [one(0)]})
    capture = captured(topic, at)
    capture.poll()

    def gone(*_: object) -> None:
        raise StorageUnreachable("away")

    monkeypatch.setattr(Objects, "write", gone)
    with pytest.raises(StorageUnreachable):
        capture.flush()
    assert capture.parts[0].waiting == len(one(0)) and capture.parts[0].batches == 0
    monkeypatch.undo()
    capture.flush()
    assert capture.parts[0].batches == 1


def test_an_upload_by_somebody_else_while_it_is_read_is_told(s3: S3Server, at: RemoteFolder) -> None:
    url = f"{at.place}/__consumer_offsets-0/{0:020d}.log"
    s3.put(url, one(0))
    (log,) = logs_of(segments_of([at.place], at.options))
    s3.put(url, one(0) + one(1))
    with pytest.raises(StorageChanged):
        replay([log])
