"""Backups as people have them: layouts, copies of a partition, archives; and a listing of very many."""

import json
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.history.decode.scan import Scanner
from kgroup.history.sources import logs
from kgroup.history.sources.copies import Chosen, Span, span_of
from kgroup.history.sources.logs import segment_logs, segments_of
from kgroup.storage.location import Location
from kgroup.storage.store import Found
from tests.unit.history.incidents import INCIDENTS

SEGMENT = next((INCIDENTS / "upgrade-and-back").rglob("*.log"))
DATA = SEGMENT.read_bytes()
ID, OTHER = "zjCAoo05TfOtzEaZ4BnsAw", "qPXBijDMQ46h0ALQU_itqw"
HEADERS = list(Scanner("x").headers(DATA, final=True))
FIRST, LAST = HEADERS[0].base_offset, HEADERS[-1].last_offset
BASE = f"{FIRST:020d}"


def put(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        f"broker-1/__consumer_offsets-7/{BASE}.log",
        f"kafka/__consumer_offsets-{ID}/7/{BASE}-{OTHER}.log",
        f"__consumer_offsets-7-{ID}/{BASE}-{OTHER}.log",
    ],
)
def test_layouts_that_are_known(tmp_path: Path, name: str) -> None:
    put(tmp_path / name)
    put(tmp_path / f"orders-{ID}/7/{BASE}-{OTHER}.log", b"another topic's")
    put(tmp_path / "orders-7" / f"{BASE}.log", b"another topic's")
    (log,) = segment_logs([tmp_path])
    assert (log.partition, log.files) == (7, (tmp_path / name,))


@pytest.mark.parametrize(("told", "what"), [("compression", "compressed"), ("encryption", "encrypted")])
def test_what_tiered_storage_has_packed_is_refused(tmp_path: Path, told: str, what: str) -> None:
    segment = put(tmp_path / f"__consumer_offsets-{ID}/7/{BASE}-{OTHER}.log")
    manifest = segment.with_suffix(".rsm-manifest")
    manifest.write_text(json.dumps({"version": "1", "compression": False}))
    assert len(segment_logs([tmp_path])) == 1
    manifest.write_text(json.dumps({"version": "1", told: {"dataKey": "x"}}))
    with pytest.raises(StorageError, match=f"was {what} by tiered storage"):
        segment_logs([tmp_path])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (f"__consumer_offsets-7/{BASE}.log.gz", "gunzip"),
        (f"__consumer_offsets-7/{BASE}.log.zst", "unzstd"),
        ("backup.tar.gz", "tar -xzf"),
        ("__consumer_offsets-7.zip", "unzip"),
    ],
)
def test_a_packed_backup_is_refused_with_how_to_unpack_it(tmp_path: Path, name: str, how: str) -> None:
    packed = put(tmp_path / name)
    for place in (tmp_path, packed):
        with pytest.raises(StorageError, match="is compressed, or an archive, which is not read") as caught:
            segment_logs([place])
        assert how in str(caught.value.hint)


def test_a_packed_segment_is_not_left_out_in_silence(tmp_path: Path) -> None:
    put(tmp_path / "__consumer_offsets-7" / f"{BASE}.log")
    put(tmp_path / "notes.zip")
    put(tmp_path / "orders-7" / f"{BASE}.log.gz")
    assert len(segment_logs([tmp_path])) == 1
    put(tmp_path / "__consumer_offsets-8" / f"{BASE}.log.gz")
    with pytest.raises(StorageError, match=r"__consumer_offsets-8/.*\.log\.gz is compressed"):
        segment_logs([tmp_path])


def copies(root: Path, **data: bytes) -> dict[str, Path]:
    return {name: put(root / name / "__consumer_offsets-7" / f"{BASE}.log", d) for name, d in data.items()}


def test_the_longest_copy_is_read(tmp_path: Path) -> None:
    made = copies(tmp_path, a=DATA[: HEADERS[3].end], b=DATA, c=DATA[: HEADERS[5].end + 9])
    look = segments_of([tmp_path])
    assert look.partitions == {7: Chosen((made["b"],))}
    assert look.notes == tuple(
        f"partition 7: {made[name].parent} is not read, as {made['b'].parent} has all of its records"
        for name in "ca"
    )


def test_a_damaged_copy_is_not_the_one(tmp_path: Path) -> None:
    middle = (HEADERS[4].position + HEADERS[4].end) // 2
    damaged = DATA[:middle] + bytes([DATA[middle] ^ 1]) + DATA[middle + 1 :]
    made = copies(tmp_path, a=damaged + b"\0" * 9, b=DATA)
    look = segments_of([tmp_path])
    (log,) = logs.logs_of(look)
    found = [h.base_offset for _, headers in log.batches() for h in headers]
    assert found == [h.base_offset for h in HEADERS]
    assert log.bad == [] and f"{made['a']}: bytes {HEADERS[4].position} to" in look.notes[0]
    # Where nothing else reaches so far, it is read with its damage.
    made = copies(tmp_path, a=damaged, b=DATA[: HEADERS[3].end])
    look = segments_of([tmp_path])
    assert look.partitions == {7: Chosen((made["a"],))}


def test_backups_of_several_weeks_add_up(tmp_path: Path) -> None:
    cut, later = HEADERS[4].position, HEADERS[2].position
    first = put(tmp_path / "jan" / "__consumer_offsets-7" / f"{BASE}.log", DATA[:cut])
    name = f"{HEADERS[2].base_offset:020d}.log"
    second = put(tmp_path / "feb" / "__consumer_offsets-7" / name, DATA[later:])
    look = segments_of([tmp_path])
    assert look.partitions[7].files == (first, second) and look.notes == ()
    assert look.partitions[7].stretches[1].start == HEADERS[4].position - later


def test_a_span_is_found_at_the_end_of_a_large_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = put(tmp_path / f"{BASE}.log", DATA + b"\0" * 3000)
    empty = put(tmp_path / f"{LAST + 1:020d}.log", b"")
    for size in (64, 700, 1 << 20):
        monkeypatch.setattr("kgroup.history.sources.copies._CHUNK", size)
        assert span_of([segment, empty]) == Span(FIRST, LAST)
    assert span_of([empty]) is None
    assert span_of([put(tmp_path / "x.log", b"no batch" * 99)]) is None


def test_a_segment_that_tiered_storage_holds_twice_is_read_once(tmp_path: Path) -> None:
    for number in (ID, OTHER):
        put(tmp_path / f"__consumer_offsets-{ID}/7/{BASE}-{number}.log")
    from kgroup.history.replay import replay

    story, alone = replay(segment_logs([tmp_path])), replay(segment_logs([SEGMENT.parent]))
    assert len(story.events) == len(alone.events) and story.coverage[0].records == alone.coverage[0].records


class Endless:
    """A bucket with very many objects of other topics, and a segment of ours at its end."""

    count = 0

    def walk(self, folder: Location) -> Iterator[Found]:
        for number in range(self.count):
            topic = folder / f"orders-{number % 50}"
            yield Found(topic / f"{number:020d}.log", 100, '"tag"')
            yield Found(topic / "partition.metadata", 100, '"tag"')
        yield Found(folder / f"__consumer_offsets-7/{BASE}.log", 100, '"tag"')


def test_a_listing_takes_no_memory_for_what_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "open_store", lambda *_: Endless())
    monkeypatch.setattr(logs, "check_one_cluster", lambda _: None)
    peaks = []
    for Endless.count in (1000, 50_000):
        tracemalloc.start()
        look = segments_of([Location.parse("s3://bucket")])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert [str(file) for file in look.partitions[7].files] == [
            f"s3://bucket/__consumer_offsets-7/{BASE}.log"
        ]
    assert peaks[1] < peaks[0] + 100_000


def test_a_folder_of_one_partition_can_be_copied_anywhere(tmp_path: Path) -> None:
    shutil.copy(SEGMENT, tmp_path / SEGMENT.name)
    (log,) = segment_logs([tmp_path])
    assert log.partition == 0
