"""The catalog on disk: after a kill at any byte it holds all that was acknowledged; damage is told apart."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log.files import CATALOG
from kgroup.runtime import catalog as catalogs
from kgroup.runtime import change_file
from kgroup.runtime.catalog import Catalog, CatalogTopic
from kgroup.runtime.placement import Placement


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are killed here, machines are not."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Killed(BaseException):
    """The process ends here."""


def seen(catalog: Catalog) -> tuple[object, ...]:
    """All that a catalog says but producer ids."""
    return (
        dict(catalog.topics),
        (catalog.image.version, dict(catalog.image.by_name)),
        dict(catalog.group_configs),
        dict(catalog.broker_configs),
        catalog.features,
        "x" in catalog.settled,
    )


def change(catalog: Catalog, seed: int, ids: list[int]) -> None:
    """Change something of any kind; the producer ids this gave out go to `ids`."""
    chance = random.Random(seed)
    name = f"t{chance.randrange(5)}"
    known = catalog.topics.get(name)
    match chance.randrange(8):
        case 0 | 1 | 2:
            catalog.add(CatalogTopic(name, chance.randbytes(16), 1, 1, {"retention.ms": str(seed)}))
        case 3 if known is not None:
            catalog.remove(name)
        case 4 if known is not None:
            catalog.grow(name, known.partitions + 1, {known.partitions: Placement.at((1, 0))})
        case 5:
            catalog.configure_group(name, chance.choice([{}, {"consumer.session.timeout.ms": "45001"}]))
        case 6:
            with catalog.together():
                catalog.configure_broker("", {"max.connections": str(seed)})
                catalog.finalize_features({"group.version": chance.randrange(2)})
                catalog.add(CatalogTopic("two", chance.randbytes(16), 2))
                catalog.settle("x")
        case _:
            ids += [catalog.allocate_producer_id() for _ in range(2)]


def made(seeds: list[int]) -> Catalog:
    """A catalog in memory with these changes."""
    catalog = Catalog(None)
    for seed in seeds:
        change(catalog, seed, [])
    return catalog


class Disk:
    """The calls that change files, until the process is killed at one of them, or within it."""

    def __init__(self, patch: pytest.MonkeyPatch, chance: random.Random) -> None:
        self.left = chance.randrange(1, 25)
        self.within = chance.random()
        self._write, self._replace = os.write, Path.replace
        patch.setattr(os, "write", self.write)
        patch.setattr(os, "fsync", lambda fd: self._step())
        patch.setattr(os, "ftruncate", lambda fd, size: None)  # a process that is killed takes nothing back
        patch.setattr(Path, "replace", lambda path, target: self.replace(path, target))

    def write(self, fd: int, data: bytes) -> int:
        if self.left == 1:
            self._write(fd, data[: int(self.within * len(data))])
        self._step()
        return self._write(fd, data)

    def replace(self, path: Path, target: Path) -> Path:
        self._step()
        return self._replace(path, target)

    def _step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Killed


@pytest.mark.parametrize("seed", range(8))
def test_a_kill_at_any_byte_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Killed within a change or between the steps of a rewrite, opened again, changed on."""
    monkeypatch.setattr(change_file, "SHORT", 2000)
    monkeypatch.setattr(catalogs, "PRODUCER_ID_BLOCK", 3)
    chance = random.Random(seed)
    done: list[int] = []
    ids: list[int] = []
    torn = 0
    catalog = Catalog(tmp_path)
    for _ in range(25):
        with monkeypatch.context() as patch:
            Disk(patch, chance)
            try:
                while True:
                    doing = chance.randrange(1 << 32)
                    change(catalog, doing, ids)
                    done.append(doing)
            except Killed:
                pass
        catalog = Catalog(tmp_path, new=False)
        torn += catalog.torn_tail is not None
        if seen(catalog) != seen(made(done)):
            assert catalog.torn_tail is None
            done.append(doing)  # it was whole, if not acknowledged
        assert seen(catalog) == seen(made(done))
    assert torn
    assert len(set(ids)) == len(ids)


def lines_of(folder: Path) -> list[bytes]:
    return (folder / CATALOG).read_bytes().splitlines(keepends=True)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A folder whose process was killed after it created the topics a, b and c."""
    catalog = Catalog(tmp_path)
    for number, name in enumerate("abc"):
        catalog.add(CatalogTopic(name, bytes([number + 1]) * 16, 1))
    return tmp_path


def test_an_incomplete_last_change_is_cut_off_and_kept(killed: Path) -> None:
    path = killed / CATALOG
    *whole, last = lines_of(killed)
    before = b"".join(whole)
    for length in range(1, len(last) - 1, 7):
        path.write_bytes(before + last[:length])
        catalog = Catalog(killed, new=False)
        assert (list(catalog.topics), catalog.image.version) == (["a", "b"], 2)
        assert catalog.torn_tail is not None
        assert catalog.torn_tail.kept.read_bytes() == last[:length]
        catalog.add(CatalogTopic("d", bytes([9]) * 16, 1))
        again = Catalog(killed, new=False)
        assert (list(again.topics), again.torn_tail) == (["a", "b", "d"], None)
        catalog.torn_tail.kept.unlink()
    path.write_bytes(
        before + last[: len(last) // 2] + bytes(500) + b"\n"
    )  # blocks that never reached the disk
    assert list(Catalog(killed, new=False).topics) == ["a", "b"]


def test_a_last_change_that_lacks_only_its_newline_is_whole(killed: Path) -> None:
    path = killed / CATALOG
    path.write_bytes(path.read_bytes()[:-1])
    catalog = Catalog(killed, new=False)
    assert (list(catalog.topics), catalog.torn_tail) == (["a", "b", "c"], None)
    catalog.add(CatalogTopic("d", bytes([9]) * 16, 1))
    assert list(Catalog(killed, new=False).topics) == ["a", "b", "c", "d"]


def test_no_flipped_bit_takes_a_change_away_in_silence(killed: Path) -> None:
    path = killed / CATALOG
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            catalog = Catalog(killed, new=False)
        except StorageError as error:
            assert str(path) in error.message
            continue
        if catalog.torn_tail is None:
            assert list(catalog.topics) == ["a", "b", "c"], at
        else:  # of the last change, nothing tells the bit from a block that never reached the disk
            assert list(catalog.topics) == ["a", "b"]
            assert at >= whole.rindex(b"\n", 0, -1)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_change_that_is_gone_or_in_another_place_is_damage(killed: Path, gone: int) -> None:
    lines = lines_of(killed)
    path = killed / CATALOG
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with pytest.raises(StorageError, match="is not a kgroup catalog"):
        Catalog(killed, new=False)
    lines[1], lines[2] = lines[2], lines[1]
    path.write_bytes(b"".join(lines))
    with pytest.raises(StorageError, match="change 3 at byte .* follows change 1"):
        Catalog(killed, new=False)


def test_after_a_clean_stop_no_cut_is_taken_for_a_kill(killed: Path) -> None:
    Catalog(killed, new=False).close()
    path = killed / CATALOG
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError, match="is not a kgroup catalog"):
            Catalog(killed, new=False)


def test_what_it_costs_to_add_a_topic_does_not_grow_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was the whole catalog, written with two syncs: 1,000 topics took 445 ms each on a busy machine."""
    written = synced = 0
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        nonlocal written
        written += len(data)
        return write(fd, data)

    def noted(fd: int) -> None:
        nonlocal synced
        synced += 1

    monkeypatch.setattr(os, "write", counted)
    monkeypatch.setattr(os, "fsync", noted)
    catalog = Catalog(tmp_path)
    synced = 0
    for number in range(5000):
        catalog.add(CatalogTopic(f"topic-{number}", number.to_bytes(16), 1))
    assert written < 5000 * 200
    assert synced <= 5000 + 2 * 5
    monkeypatch.undo()
    assert len(Catalog(tmp_path, new=False).topics) == 5000
