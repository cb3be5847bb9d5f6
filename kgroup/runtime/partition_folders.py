"""A data folder and the folders of partitions in it: opened, found missing, deleted."""

import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kgroup.errors import StorageError
from kgroup.log.files import remove_partitions
from kgroup.log.interface import DamagedLog
from kgroup.log.open_files import OpenFiles
from kgroup.log.partition import PartitionLog
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.complaints import line_of
from kgroup.runtime.topic_settings import TopicSettings

log = logging.getLogger(__name__)

OF_A_PARTITION = 16 << 10
"""Bytes on disk of a partition with one record: its folder, and three files of a block each."""


def all_there(data: Path, topic: CatalogTopic) -> bool:
    """Return whether every partition of a topic has its folder."""
    return all((data / f"{topic.name}-{number}").is_dir() for number in range(topic.partitions))


def ensure_room(data: Path | None, partitions: int) -> None:
    """Raise StorageError unless there is room for a first record in so many new partitions.

    They are made on disk when they are first written to: without this, a topic is created on a full disk,
    and each record of it refused.
    """
    if data is None or not partitions or not hasattr(os, "posix_fallocate"):
        return
    try:
        with tempfile.TemporaryFile(dir=data) as probe:  # free space alone says nothing of quotas
            os.posix_fallocate(probe.fileno(), 0, partitions * OF_A_PARTITION)
    except OSError as error:
        raise StorageError(
            f"{data} has no room for {partitions} new partitions: {error.strerror}",
            hint="free space, or serve a folder on a larger disk",
        ) from None


def discard(data: Path | None, partitions: Iterable[tuple[str, int]]) -> None:
    """Delete partitions of deleted topics; log one that stays."""
    try:
        remove_partitions(data, partitions)
    except StorageError as error:
        log.error("%s", line_of(error))


def open_partition(
    folder: Path, settings: TopicSettings, files: OpenFiles, *, was_there: bool
) -> PartitionLog:
    """Return the log in `folder`, which is made unless it `was_there` once.

    DamagedLog for one that was removed: an empty log in its place would silently lose what it had.
    """
    if was_there and not folder.is_dir():
        raise DamagedLog(
            f"{folder} is missing: what the partition held is gone",
            hint="restore it from a backup; or, to give it up, make an empty folder of that name",
        )
    return PartitionLog(folder, segment_bytes=settings.segment_bytes, fsync=settings.fsync, files=files)
