"""What a cluster makes of its data folder: topics taken over whole, deleted ones that do not come back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kgroup import domain
from kgroup.domain import OFFSETS_TOPIC, Topic
from kgroup.errors import ConfigError, StorageError
from kgroup.log.files import CATALOG
from kgroup.log.interface import Log
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.releases import Release
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


@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_copy_of_kafkas_folder_is_taken_over_whole_or_not_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Topics that were left out were hidden, and deleted when one of their name was created."""
    for name in ("a", "b", "c"):
        log = PartitionLog(tmp_path / f"{name}-0")
        log.append([LogRecord(b"k", b"v")])
        log.close()
    left = last

    def killed_at_last(fd: int, content: bytes) -> int:
        nonlocal left
        left -= os.readlink(f"/proc/self/fd/{fd}") == str(tmp_path / CATALOG)
        if left < 0:
            raise KeyboardInterrupt
        return write(fd, content)

    write = os.write
    monkeypatch.setattr(os, "write", killed_at_last)
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


def test_a_topic_finds_no_records_of_one_that_a_crash_left(tmp_path: Path) -> None:
    """Not in its first partitions, nor in those it is given later."""
    for partition in range(4):
        left = PartitionLog(tmp_path / f"t-{partition}")
        left.append([LogRecord(b"k", b"v")])
        left.close()
    (tmp_path / "aside").mkdir()
    for partition in range(4):
        (tmp_path / f"t-{partition}").rename(tmp_path / "aside" / f"t-{partition}")
    cluster = opened(tmp_path)
    for partition in range(4):
        (tmp_path / "aside" / f"t-{partition}").rename(tmp_path / f"t-{partition}")
    cluster.create_topic(CatalogTopic("t", cluster.catalog.new_topic_id(), 2))
    log_of(cluster, "t").append([LogRecord(b"k", b"v")])
    cluster.add_partitions("t", 4)
    logs = [cluster.log("t", partition) for partition in range(4)]
    assert [log.end_offset for log in logs if log is not None] == [1, 0, 0, 0]
    cluster.close()


def test_a_topic_is_created_without_a_look_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder was listed, and all topics were compared in each of 50 shards."""
    compared: list[int] = []
    compare = domain._changes

    def counted(before: Mapping[str, Topic], *rest: Any) -> domain.TopicChanges:
        compared.append(len(rest[-1]))
        return compare(before, *rest)

    cluster = Cluster(tmp_path, offsets_partitions=50)
    for number in range(20):
        create(cluster, f"t{number}")
    monkeypatch.setattr(domain, "_changes", counted)
    monkeypatch.setattr(os, "listdir", None)
    monkeypatch.setattr(os, "scandir", None)
    create(cluster, "t")
    cluster.delete_topic("t0")
    assert compared == [1, 1]
    assert {len(shard.coordinator.state.image.by_name) for shard in cluster.live_shards()} == {21}
    monkeypatch.undo()
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
    assert synced == [str(tmp_path / CATALOG)]
    cluster.close()


def test_a_folder_is_not_served_as_a_release_that_lacks_its_features(tmp_path: Path) -> None:
    """Kafka does not start either where a feature in force is newer than itself (KIP-584)."""
    opened(tmp_path).close()
    with pytest.raises(ConfigError, match=r"group.version 1, which Kafka 2\.8 does not support"):
        Cluster(tmp_path, offsets_partitions=1, kafka=Release.of("2.8"))
    opened(tmp_path).close()


def test_a_folder_of_an_older_release_keeps_its_features(tmp_path: Path) -> None:
    Cluster(tmp_path, offsets_partitions=1, kafka=Release.of("2.8")).close()
    again = opened(tmp_path)
    assert again.catalog.features.levels == {}
    again.close()
