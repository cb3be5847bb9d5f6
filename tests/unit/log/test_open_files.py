"""A bounded number of logs keep their files open; one whose file was closed is as one whose was not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log import open_files
from kgroup.log.open_files import OpenFiles, most_files
from kgroup.log.partition import PartitionLog
from kgroup.portable import raise_file_limit
from kgroup.protocol.batches import LogRecord


@pytest.fixture
def two_files(monkeypatch: pytest.MonkeyPatch) -> OpenFiles:
    """Room for two."""
    monkeypatch.setattr(open_files, "most_files", lambda: 2)
    return OpenFiles()


def is_open(log: PartitionLog) -> bool:
    links = (Path(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
    return str(log.segments[-1].path) in {os.readlink(link) for link in links if link.is_symlink()}


def put(log: PartitionLog, value: str) -> None:
    log.append([LogRecord(b"k", value.encode())])


def values(log: PartitionLog) -> list[str]:
    return [(record.value or b"").decode() for batch in log.batches() for record in batch.records]


def opened(folder: Path, files: OpenFiles | None, count: int, *, fsync: bool = False) -> list[PartitionLog]:
    logs = [PartitionLog(folder / f"t-{n}", files=files, fsync=fsync) for n in range(count)]
    for log in logs:
        log.create()
    return logs


def test_the_log_that_was_appended_to_longest_ago_is_closed(tmp_path: Path, two_files: OpenFiles) -> None:
    a, b, c = opened(tmp_path, two_files, 3)
    assert [is_open(log) for log in (a, b, c)] == [False, True, True]
    put(b, "b1")
    put(a, "a1")
    assert [is_open(log) for log in (a, b, c)] == [True, True, False]
    assert c.read(0, 1000) == b""
    assert values(c) == []
    put(c, "c1")
    assert [is_open(log) for log in (a, b, c)] == [True, False, True]
    for log in (a, b, c):
        log.close()
        assert not is_open(log)
    assert len(two_files) == 0
    again = opened(tmp_path, None, 3)
    assert [values(log) for log in again] == [["a1"], ["b1"], ["c1"]]
    assert [log.torn_tail for log in again] == [None] * 3
    for log in again:
        log.close()


def test_what_is_appended_to_a_log_opened_again_is_synced_as_before(
    tmp_path: Path, two_files: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    logs = opened(tmp_path, two_files, 3, fsync=True)
    monkeypatch.setattr(os, "fsync", noted)
    for _ in range(2):
        for log in logs:
            synced.clear()
            put(log, "v")
            assert synced == [str(log.segments[-1].path)]
    synced.clear()
    sealed = logs[0].segments[-1].path
    assert not is_open(logs[0])
    logs[0].roll()
    assert synced[0] == str(sealed)
    assert is_open(logs[0])
    put(logs[0], "after")
    logs[1].segments[-1].close()
    synced.clear()
    logs[1].close()  # notes what it holds, which has to be on disk by then
    assert synced[0] == str(logs[1].segments[-1].path)
    for log in logs:
        log.close()
    assert not any(is_open(log) for log in logs)
    assert [values(log) for log in opened(tmp_path, None, 3)] == [["v", "v", "after"], ["v", "v"], ["v", "v"]]


@pytest.mark.parametrize("damage", ["gone", "shorter", "longer"])
def test_nothing_is_appended_to_a_file_that_was_changed_meanwhile(
    tmp_path: Path, two_files: OpenFiles, damage: str
) -> None:
    """It would be indexed by a wrong position, or begin a log that has lost its first records."""
    log, *others = opened(tmp_path, two_files, 3)
    put(log, "one")
    for other in others:
        put(other, "x")
    path = log.segments[-1].path
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-1] if damage == "shorter" else whole + b"x")
    with pytest.raises(StorageError, match=f"{path} cannot be opened: (No such file|it was left with)"):
        put(log, "two")
    assert path.exists() == (damage != "gone")
    path.write_bytes(whole)
    put(log, "two")
    assert values(log) == ["one", "two"]
    for each in (log, *others):
        each.close()


def test_a_log_that_fails_to_open_keeps_no_file(
    tmp_path: Path, two_files: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fsync", fail)
    log = PartitionLog(tmp_path / "t-0", files=two_files, fsync=True)
    with pytest.raises(StorageError, match="cannot be created"):
        log.create()
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(two_files) == 0
    monkeypatch.undo()
    put(log, "v")
    log.close()
    (again,) = opened(tmp_path, two_files, 1)
    monkeypatch.setattr(os, "fsync", fail)
    put(again, "w")
    again.close()
    with pytest.raises(StorageError, match="cannot be opened"):
        PartitionLog(tmp_path / "t-0", files=two_files)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(two_files) == 0


@contextmanager
def limits(soft: int, hard: int | None = None) -> Iterator[None]:
    import resource

    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def test_logs_leave_as_many_files_to_connections() -> None:
    with limits(1024):
        assert most_files() == 480
    with limits(128):
        assert most_files() == 48


def test_where_connections_have_taken_theirs_logs_make_do_with_the_rest(tmp_path: Path) -> None:
    taken: list[int] = []
    files = OpenFiles()
    try:
        with limits(256):
            while not taken or taken[-1] < 256 - 64 - 1:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            logs = opened(tmp_path, files, 60)
            for log in logs:
                put(log, "v")
            assert 20 <= len(files) <= 32
            for log in logs:
                log.close()
    finally:
        for fd in taken:
            os.close(fd)
    assert [values(log) for log in opened(tmp_path, None, 60)] == [["v"]] * 60


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    import resource

    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    with limits(256):
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (old[1], old[1])
