"""One recorder at a time at a URL: who has the lease writes, and who lost it ends."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.recording.lease import ASKED_S, LASTS_S, LOCK, Lease, NotOurs, alone
from kgroup.errors import StorageError
from kgroup.history.sources.folders import RemoteFolder
from tests.memory_store import MemoryStore, opened
from tests.unit.admin.fake_cluster import FakeCluster

NOW = 1_700_000_000_000


class Recorders:
    """Recorders of one place. What another does while one sleeps is in `meanwhile`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = MemoryStore()
        self.place = opened(monkeypatch, self.store)
        self.fake = FakeCluster()
        self.noted: list[str] = []
        self.meanwhile = lambda: None
        retry = replace(self.fake.retry(), sleep=self.slept)
        self.cluster = ClusterView(self.fake, retry, now_ms=lambda: NOW + int(self.fake.time() * 1000))

    def slept(self, seconds: float) -> None:
        self.fake.time.sleep(seconds)
        self.meanwhile()

    def another(self) -> tuple[RemoteFolder, Lease]:
        folder = RemoteFolder(self.place.place, self.place.options)
        return folder, Lease(folder, self.cluster)

    def running(self) -> tuple[RemoteFolder, Lease]:
        folder, lease = self.another()
        lease.take(self.noted.append)
        return folder, lease


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> Recorders:
    return Recorders(monkeypatch)


def test_who_has_it_writes_and_gives_it_up(recorders: Recorders) -> None:
    folder, lease = recorders.running()
    folder.write("a", b"1")
    lease.give_up()
    assert recorders.store.names == ["a"]
    folder, _ = recorders.running()
    folder.write("a", b"2")
    assert recorders.store["a"] == b"2" and recorders.fake.time() == 0 and recorders.noted == []


def test_a_second_one_is_refused_once_it_sees_that_the_first_runs(recorders: Recorders) -> None:
    _, first = recorders.running()
    _, second = recorders.another()
    recorders.meanwhile = first.renew
    with pytest.raises(StorageError) as refused:
        second.take(recorders.noted.append)
    assert f", process {os.getpid()} (" in refused.value.message
    assert "until 2023-11-14T22:14:22Z" in refused.value.message and "a place of its own" in (
        refused.value.hint or ""
    )
    assert "waiting for the lease of " in recorders.noted[0] and len(recorders.noted) == 1
    first.check()


def test_one_that_was_killed_is_waited_for(recorders: Recorders) -> None:
    recorders.running()
    recorders.fake.time.sleep(20)
    folder, _ = recorders.running()
    assert LASTS_S <= recorders.fake.time() <= LASTS_S + 2 * ASKED_S and len(recorders.noted) == 1
    folder.write("a", b"1")


def test_one_that_was_killed_long_ago_is_not_waited_for(recorders: Recorders) -> None:
    recorders.running()
    recorders.fake.time.sleep(1000)
    recorders.running()
    assert recorders.fake.time() == 1000 + ASKED_S and recorders.noted == []


def test_a_clock_that_is_years_ahead_holds_no_other_up(recorders: Recorders) -> None:
    recorders.store.objects[f"recording/{LOCK}"] = b'["of 2096",4000000000000]', 0, 0
    recorders.running()
    assert recorders.fake.time() <= LASTS_S + 2 * ASKED_S


def test_of_two_that_take_it_over_in_the_same_moment_one_has_it(recorders: Recorders) -> None:
    recorders.store.objects[f"recording/{LOCK}"] = b'["killed",1]', 0, 0
    _, other = recorders.another()
    others = [lambda: other._own.write(LOCK, other._mine()), other.renew, other.renew]
    recorders.meanwhile = lambda: others.pop(0)()
    with pytest.raises(StorageError, match="cannot be recorded into"):
        recorders.running()
    other.check()


def test_who_lost_it_writes_nothing_more(recorders: Recorders) -> None:
    """Its machine slept: the next one took over when the lease ran out."""
    folder, lease = recorders.running()
    folder.append("observed/a", 0, b"1")
    recorders.fake.time.sleep(LASTS_S)
    for change in (
        lambda: folder.append("observed/a", 1, b"2"),
        lambda: folder.write("b", b"2"),
        lambda: folder.delete("observed/a"),
    ):
        with pytest.raises(StorageError, match="ran out, and could not be renewed"):
            change()
    recorders.running()
    lease.renew()
    with pytest.raises(NotOurs, match="s3://bucket/recording is recorded into by .* now: this recorder ends"):
        folder.append("observed/a", 1, b"2")
    lease.give_up()
    assert recorders.store["observed/a"] == b"1" and LOCK in recorders.store.names


def test_a_store_that_was_away_ends_no_recorder(recorders: Recorders) -> None:
    folder, lease = recorders.running()
    recorders.store.down()
    for _ in range(10):
        recorders.fake.time.sleep(LASTS_S / 4)
        with pytest.raises(StorageError, match="could not be reached"):
            lease.renew()
    recorders.store.up()
    with pytest.raises(StorageError, match="ran out"):
        folder.write("a", b"1")
    lease.renew()
    folder.write("a", b"1")


def test_an_answer_that_was_lost_shuts_nobody_out(recorders: Recorders) -> None:
    """The object was created, and the second try finds it: it is its own."""
    _, lease = recorders.another()
    recorders.store.create(recorders.place.place / LOCK, lease._mine())
    lease.take(recorders.noted.append)
    lease.check()
    assert recorders.noted == []


def test_what_is_no_lease_is_named(recorders: Recorders) -> None:
    recorders.store.objects[f"recording/{LOCK}"] = b"{}", 0, 0
    with pytest.raises(StorageError, match=r"s3://bucket/recording/.recorder is no lease: ") as refused:
        recorders.running()
    assert refused.value.hint == "delete it if no recorder runs"


def test_it_is_renewed_beside_and_given_up_at_the_end(
    recorders: Recorders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgroup.admin.recording.lease.RENEWED_S", 0.001)
    renewed = threading.Semaphore(0)
    recorders.store.after = lambda path: renewed.release()
    with alone(recorders.place, recorders.cluster, recorders.noted.append):
        assert all(renewed.acquire(timeout=60) for _ in range(5))
    assert recorders.store.names == []
