"""A run reads what is new, and the batch before it: not the whole of a segment that grows."""

import io
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from kgroup.history.log_items import Problem
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables import late
from kgroup.pipeline.tables.ingest import RunReport, fill
from kgroup.pipeline.tables.store import Store
from tests.pipeline.made_logs import made_batches, write_names
from tests.pipeline.test_ingest import check_equal, in_process

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
BATCHES = made_batches(5, 400)
SIZE = sum(map(len, BATCHES))


class Counted(io.FileIO):
    """A segment, and how many bytes were read of all of them."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        Counted.read_bytes += len(data)
        return data


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened = Path.open

    def open_it(path: Path, mode: str = "r", *args: object, **more: object) -> object:
        if path.suffix == ".log" and mode == "rb":
            return Counted(str(path), "rb")
        return opened(path, mode, *args, **more)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_it)
        yield


class Sized(InProcess):
    """Tasks, and for how many bytes they were planned."""

    sizes: tuple[int, ...] = ()

    def tasks(self, size: int) -> int:
        self.sizes = (*self.sizes, size)
        return super().tasks(size)


class Log:
    def __init__(self, root: Path, name: str = "in") -> None:
        self.folder = root / name / "__consumer_offsets-6"
        self.file = self.folder / f"{0:020d}.log"
        self.folder.mkdir(parents=True)
        write_names(root / name)

    def grow(self, count: int, torn: int = 0) -> None:
        rest = BATCHES[count][:torn] if torn else b""
        self.file.write_bytes(b"".join(BATCHES[:count]) + rest)

    def in_two(self, count: int) -> None:
        """As `grow`, with the half of it in a segment of its own."""
        half = count // 2
        self.grow(half)
        second = self.folder / f"{int.from_bytes(BATCHES[half][:8], 'big'):020d}.log"
        second.write_bytes(b"".join(BATCHES[half:count]))

    def read(self, out: Path, move: InProcess | None = None) -> tuple[RunReport, int]:
        """A run over the log, and how many bytes it read of segments."""
        Counted.read_bytes = 0
        source = Segments.of([self.folder.parent])
        report = fill(move or Sized(2), source, Store(out), 1 << 20, 2)
        return report, Counted.read_bytes


def room(*batches: int) -> int:
    """What a run may read: these batches, twice the one before, which is checked first, and some headers."""
    first, last = batches
    return sum(map(len, BATCHES[first:last])) + 3 * max(map(len, BATCHES)) + 1024


def test_a_run_reads_what_is_new_and_plans_for_that(tmp_path: Path) -> None:
    log, out = Log(tmp_path), tmp_path / "out"
    log.grow(360)
    report, read = log.read(out)
    assert report.bytes_read <= read and read >= sum(map(len, BATCHES[:360]))
    for number, count in enumerate((365, 380, 400)):
        move = Sized(2)
        log.grow(count)
        report, read = log.read(out, move)
        before = (360, 365, 380)[number]
        assert read <= room(before, count) < SIZE / 4
        assert report.bytes_read <= room(before, count) and max(move.sizes) <= room(before, count)
    report, read = log.read(out)
    assert (report.run, read <= room(400, 400)) == (None, True)
    check_equal(Store(out), in_process(log.folder.parent))


def index(file: Path, every: int, zeros: int = 0) -> None:
    """Kafka's offset index beside a segment, an entry for each so many batches."""
    at, entries = 0, b""
    for number, batch in enumerate(BATCHES):
        if number and number % every == 0:
            entries += struct.pack(">ii", int.from_bytes(batch[:8], "big"), at)
        at += len(batch)
    file.with_suffix(".index").write_bytes(entries + bytes(8 * zeros))


@pytest.mark.parametrize("zeros", [0, 5, 5_000])
def test_without_a_place_the_index_beside_the_segment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zeros: int
) -> None:
    """Another replica's segment, whose index is as long as the broker has made it."""
    monkeypatch.setattr(late, "_LOOK_BYTES", 2_000)  # of an unknown segment so much is compared
    first, second, out = Log(tmp_path, "leader"), Log(tmp_path, "follower"), tmp_path / "out"
    first.in_two(380)
    first.read(out)
    second.grow(400)
    index(second.file, 20, zeros)
    _, read = second.read(out)
    assert read <= room(360, 400) + 2_000 < SIZE / 4
    check_events(out, second)


@pytest.mark.parametrize(
    "entries", [b"", b"\0" * 7, b"\xff" * 64, struct.pack(">ii", 1, 1 << 30), b"\0\0\0\1" * 8]
)
def test_an_index_that_is_none_does_no_harm(tmp_path: Path, entries: bytes) -> None:
    log, out = Log(tmp_path), tmp_path / "out"
    log.in_two(380)
    log.read(out)
    shutil.rmtree(log.folder)
    log.folder.mkdir()
    log.grow(400)
    log.file.with_suffix(".index").write_bytes(entries)
    log.read(out)
    check_events(out, log)


def test_a_segment_that_is_another_one_now_is_read_whole(tmp_path: Path) -> None:
    """Compacted, its bytes have moved: what lies at the place is not what was there."""
    log, out = Log(tmp_path), tmp_path / "out"
    log.grow(300)
    log.read(out)
    log.file.write_bytes(b"".join(BATCHES[1:290:2] + BATCHES[290:400]))
    _, read = log.read(out)
    assert read >= log.file.stat().st_size
    log.grow(400)
    check_events(out, log)


def of_leader(epoch: int, batches: list[bytes]) -> bytes:
    return b"".join(batch[:12] + epoch.to_bytes(4, "big") + batch[16:] for batch in batches)


@pytest.mark.parametrize("split_bytes", [2_000, 1 << 20])
def test_what_a_merge_of_copies_leaves_out_is_noted_whatever_is_read(
    tmp_path: Path, split_bytes: int
) -> None:
    """A copy that turns up later has what a replaced leader wrote, at offsets that were read long ago."""
    log, other, out = Log(tmp_path, "in/one"), Log(tmp_path, "in/other"), tmp_path / "out"
    log.file.write_bytes(of_leader(5, BATCHES[:300]))
    fill(InProcess(2), Segments.of([tmp_path / "in"]), Store(out), split_bytes, 2)
    log.file.write_bytes(of_leader(5, BATCHES[:400]))
    other.file.write_bytes(of_leader(5, BATCHES[:100]) + of_leader(4, BATCHES[100:120]))
    report = fill(InProcess(2), Segments.of([tmp_path / "in"]), Store(out), split_bytes, 2)
    assert report.bytes_read <= room(300, 400)
    (bad,) = [bad for _, bad in Store(out).bad_ranges()]
    assert bad.source == str(other.file) and "of epoch 4" in bad.reason
    check_equal(Store(out), in_process(tmp_path / "in"))


def test_a_run_goes_on_in_merged_copies(tmp_path: Path) -> None:
    """One copy was compacted and is longer, so that each is read in part."""
    log, other, out = Log(tmp_path, "in/one"), Log(tmp_path, "in/other"), tmp_path / "out"
    log.grow(200)
    for count in (300, 340, 400):
        other.file.write_bytes(b"".join(BATCHES[:200:3] + BATCHES[200:count]))
        report = fill(InProcess(2), Segments.of([tmp_path / "in"]), Store(out), 2_000, 2)
        assert count == 300 or report.bytes_read <= room(300 if count == 340 else 340, count)
        check_equal(Store(out), in_process(tmp_path / "in"))


def check_events(out: Path, log: Log) -> None:
    from kgroup.pipeline.ask.story import story_in

    assert story_in(Store(out)).events == in_process(log.folder.parent).events


def test_damage_stays_reported_and_a_torn_end_is_not_damage_any_more(tmp_path: Path) -> None:
    log, out = Log(tmp_path), tmp_path / "out"
    log.grow(300, torn=40)
    data = bytearray(log.file.read_bytes())
    data[3000:3100] = b"\xee" * 100
    log.file.write_bytes(data)
    log.read(out)
    bad = [bad for _, bad in Store(out).bad_ranges()]
    assert [each.problem for each in bad] == [Problem.CORRUPT, Problem.CUT_SHORT]
    assert bad[1].start == sum(map(len, BATCHES[:300]))
    log.file.write_bytes(data[:-40] + b"".join(BATCHES[300:400]))
    _, read = log.read(out)
    assert read <= room(300, 400)
    assert [bad for _, bad in Store(out).bad_ranges()] == bad[:1]
