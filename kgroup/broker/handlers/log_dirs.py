"""DescribeLogDirs: the data folder, and what each partition takes of it (KIP-113)."""

from __future__ import annotations

import shutil

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher, refusing
from kgroup.broker.handlers.partitions import code_of
from kgroup.errors import StorageError
from kgroup.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kgroup.runtime.catalog import CatalogTopic

IN_MEMORY = "memory"
"""The folder of a cluster that keeps its logs in memory; its capacity is unknown."""


def describe_log_dirs(broker: Dispatcher, call: Call[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    """One folder, as all brokers share it, with those of the partitions asked for that this broker holds."""
    request = call.body
    folder = broker.cluster.folder
    log_dir = IN_MEMORY if folder is None else str(folder.absolute())
    try:
        total = usable = -1
        if folder is not None:
            total, _, usable = shutil.disk_usage(folder)
        topics = _topics(broker, call.node, request)
    except OSError as error:
        code = code_of(broker, call, StorageError(f"{error.filename or log_dir}: {error.strerror}"))
        failed = DescribeLogDirsResult(error_code=code, log_dir=log_dir)
        return DescribeLogDirsResponse(results=(failed,))
    found = DescribeLogDirsResult(log_dir=log_dir, topics=topics, total_bytes=total, usable_bytes=usable)
    return DescribeLogDirsResponse(results=(found,))


def _topics(
    broker: Dispatcher, node: int, request: DescribeLogDirsRequest
) -> tuple[DescribeLogDirsTopic, ...]:
    catalog = broker.cluster.catalog.topics
    wanted: dict[str, set[int]] = {}
    if request.topics is None:
        wanted = {name: set(range(topic.partitions)) for name, topic in catalog.items()}
    for asked in request.topics or ():
        wanted.setdefault(asked.topic, set()).update(asked.partitions)
    found = []
    for name, partitions in wanted.items():
        if name not in catalog:
            continue
        held = _partitions(broker, node, catalog[name], partitions)
        if held:
            found.append(DescribeLogDirsTopic(name=name, partitions=held))
    return tuple(found)


def _partitions(
    broker: Dispatcher, node: int, topic: CatalogTopic, wanted: set[int]
) -> tuple[DescribeLogDirsPartition, ...]:
    return tuple(
        DescribeLogDirsPartition(
            partition_index=partition, partition_size=broker.cluster.size_of(topic.name, partition)
        )
        for partition in range(topic.partitions)
        if partition in wanted and node in broker.cluster.placement_of(topic, partition).replicas
    )


APIS = (Api(DescribeLogDirsRequest, describe_log_dirs, refusing(DescribeLogDirsResponse)),)
