"""Several processes tell of a log what one tells, wherever it is cut."""

import multiprocessing
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.history import parallel
from kgroup.history import replay as replaying
from kgroup.history.parallel import Workers
from kgroup.history.replay import Story, replay
from kgroup.history.sources.logs import segment_logs

from .incidents import INCIDENTS, KAFKA, NAMES, OURS


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_BYTES", 1)
    monkeypatch.setattr(replaying, "MIN_PARALLEL_BYTES", 1)


def both(paths: list[Path], jobs: int = 3, **options: object) -> tuple[Story, Story]:
    one = replay(segment_logs(paths), **options)  # type: ignore[arg-type]
    return one, replay(segment_logs(paths), jobs=jobs, **options)  # type: ignore[arg-type]


def same(one: Story, several: Story) -> None:
    assert several.events == one.events
    assert several.coverage == one.coverage
    states = [(p, s.group_id, s.offsets, s.members) for p, s in one.states]
    assert [(p, s.group_id, s.offsets, s.members) for p, s in several.states] == states


@pytest.mark.parametrize("name", [*KAFKA[:2], *OURS[:1]])
def test_a_log_cut_into_shares_tells_the_same(name: str) -> None:
    same(*both([INCIDENTS / name]))


def test_partitions_are_shared_out(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES[:4]):
        (folder,) = {path.parent for path in (INCIDENTS / name).rglob("*.log")}
        shutil.copytree(folder, tmp_path / f"__consumer_offsets-{number}")
    same(*both([tmp_path], jobs=2))


def test_what_was_read_is_told_as_it_is_read() -> None:
    logs, read = segment_logs([INCIDENTS / NAMES[0]]), list[int]()
    replay(logs, jobs=2, progress=read.append)
    assert len(read) > 1 and sum(read) == logs[0].size


def test_damage_and_gaps_are_found_by_one_process(tmp_path: Path) -> None:
    (path,) = (INCIDENTS / NAMES[0]).rglob("*.log")
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    data = bytearray(path.read_bytes())
    for at in (len(data) // 4, len(data) // 2, len(data) * 3 // 4):
        data[at] ^= 0xFF
    (folder / path.name).write_bytes(data[:-7])
    one, several = both([tmp_path])
    assert one.bad and one.coverage[0].missing
    same(one, several)


def test_the_same_segments_twice_are_told_once(tmp_path: Path) -> None:
    """A segment under a second name: its records were all read before."""
    (path,) = (INCIDENTS / NAMES[0]).rglob("*.log")
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    shutil.copy(path, folder / path.name)
    shutil.copy(path, folder / f"{10**6:020}.log")
    one, several = both([tmp_path], jobs=2)
    same(one, several)
    once = replay(segment_logs([path]))
    assert [(e.kind, e.offset, e.detail) for e in several.events] == [
        (e.kind, e.offset, e.detail) for e in once.events
    ]


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """As in one process: it is damage with a reason, and the story of the others is told."""
    (path,) = (INCIDENTS / NAMES[0]).rglob("*.log")
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    shutil.copy(path, folder / path.name)
    gone = folder / f"{10**6:020}.log"
    gone.write_bytes(b"")
    listed = [segment_logs([tmp_path]) for _ in range(2)]
    gone.unlink()
    one, several = replay(listed[0]), replay(listed[1], jobs=2)
    assert one.events and "cannot be read" in one.bad[0].reason
    same(one, several)


def test_only_the_groups_that_are_wanted() -> None:
    every = replay(segment_logs([INCIDENTS / NAMES[0]]))
    name = next(event.group for event in every.events if event.group)
    one, several = both([INCIDENTS / NAMES[0]], names=[name])
    same(one, several)


def test_a_process_that_dies_is_said() -> None:
    logs = segment_logs([INCIDENTS / NAMES[0]])
    with Workers(logs, 2, {}) as workers:
        items = workers.items_of(logs[0], parallel.Seen())
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
        with pytest.raises(StorageError, match="killed"):
            # What had been sent before may still come.
            list(items)


def test_a_file_that_goes_away_is_said(tmp_path: Path) -> None:
    (path,) = (INCIDENTS / NAMES[0]).rglob("*.log")
    shutil.copy(path, tmp_path / path.name)
    (log,) = segment_logs([tmp_path])
    workers = Workers([log], 1, {})
    workers.shares = []
    gone = parallel.plan_splits([log], 1 << 20)[0]
    (tmp_path / path.name).unlink()
    piece = replace(gone.pieces[0], file=tmp_path / "gone.log")
    with workers, pytest.raises(StorageError, match=r"gone\.log"):
        list(parallel.decoded(replace(gone, pieces=(piece,)), {}))
