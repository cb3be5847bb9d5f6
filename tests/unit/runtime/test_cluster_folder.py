"""What a cluster makes of its data folder: topics taken over whole, deleted ones that do not come back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import StorageError
from kgroup.log.files import replace_file
from kgroup.log.interface import Log
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord
from kgroup.runtime import catalog
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.cluster import Cluster


def opened(folder: Path) -> Cluster:
    return Cluster(folder, offsets_partitions=1)


def create(cluster: Cluster, name: str) -> None:
    cluster.create_topic(CatalogTopic(name, cluster.catalog.new_topic_id(), 1))


def log_of(cluster: Cluster, topic: str) -> Log:
    found = cluster.log(topic, 0)
    assert found is not None
    return found


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_copy_of_kafkas_folder_is_taken_over_whole_or_not_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Topics that were left out were hidden, and deleted when one of their name was created."""
    for name in ("a", "b", "c"):
        log = PartitionLog(tmp_path / f"{name}-0")
        log.append([LogRecord(b"k", b"v")])
        log.close()
    left = last

    def killed_at_last(path: Path, content: str | bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        replace_file(path, content)

    monkeypatch.setattr(catalog, "replace_file", killed_at_last)
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path)
    monkeypatch.undo()
    cluster = opened(tmp_path)
    assert {"a", "b", "c"} < cluster.catalog.topics.keys()
    assert [log_of(cluster, name).end_offset for name in ("a", "b", "c")] == [1, 1, 1]
    cluster.close()


def test_a_topic_whose_records_cannot_be_deleted_never_comes_back_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new topic of its name served them."""

    def refused(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    cluster = opened(tmp_path)
    for name in ("t", "other"):
        create(cluster, name)
        log_of(cluster, name).append([LogRecord(b"k", b"v")])
    monkeypatch.setattr(shutil, "rmtree", refused)
    cluster.delete_topic("t")
    (line,) = caplog.messages
    assert f"{tmp_path / 't-0'} cannot be deleted: Operation not permitted (delete it by hand" in line
    with pytest.raises(StorageError, match="t-0 cannot be deleted"):
        create(cluster, "t")
    assert cluster.catalog.topics.keys() == {"other", OFFSETS_TOPIC}
    monkeypatch.undo()
    create(cluster, "t")
    assert [log_of(cluster, name).end_offset for name in ("t", "other")] == [0, 1]
    cluster.close()


def test_what_is_deleted_is_not_brought_to_disk_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion of a thousand partitions synced each of them twice while everybody waited."""
    cluster = opened(tmp_path)
    create(cluster, "t")
    log_of(cluster, "t").append([LogRecord(b"k", b"v")])
    synced: list[str] = []

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", noted)
    cluster.delete_topic("t")
    assert synced == [str(tmp_path / "catalog.json.tmp"), str(tmp_path)]
    cluster.close()
