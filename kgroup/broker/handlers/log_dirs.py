"""DescribeLogDirs: the data folder, and what each partition takes of it (KIP-113)."""

from __future__ import annotations

import shutil

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.partitions import code_of
from kgroup.errors import StorageError
from kgroup.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

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
        catalog = broker.cluster.catalog.topics
        requested: dict[str, set[int]] = {}
        if request.topics is None:
            requested = {name: set(range(topic.partitions)) for name, topic in catalog.items()}
        for asked in request.topics or ():
            requested.setdefault(asked.topic, set()).update(asked.partitions)
        topics = []
        for name, partitions in requested.items():
            known = catalog.get(name)
            if known is None:
                continue
            held = tuple(
                DescribeLogDirsPartition(partition_index=p, partition_size=broker.cluster.size_of(name, p))
                for p in sorted(partitions.intersection(range(known.partitions)))
                if call.node in broker.cluster.placement_of(known, p).replicas
            )
            if held:
                topics.append(DescribeLogDirsTopic(name=name, partitions=held))
    except OSError as error:
        code = code_of(broker, call, StorageError(f"{error.filename or log_dir}: {error.strerror}"))
        failed = DescribeLogDirsResult(error_code=code, log_dir=log_dir)
        return DescribeLogDirsResponse(results=(failed,))
    result = DescribeLogDirsResult(
        log_dir=log_dir, topics=tuple(topics), total_bytes=total, usable_bytes=usable
    )
    return DescribeLogDirsResponse(results=(result,))


APIS = (Api(DescribeLogDirsRequest, describe_log_dirs),)
