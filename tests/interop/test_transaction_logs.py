"""Logs that transactions leave behind: a real Kafka's load into ours, and ours are read by Kafka's tools."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import records_in
from kgroup.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kgroup.protocol.transaction_records import decode_key, decode_value
from kgroup.runtime.cluster import Cluster

from . import jvm
from .conftest import KINDS, SETTINGS, Case, require
from .driver import Client, Driver
from .kgroup_server import KgroupServer
from .server import Server
from .test_transactions import Pipeline

pytestmark = pytest.mark.interop
INTERNAL = ("__consumer_offsets", "__transaction_state")
IDS = ("tx-java", "rd-0", "rd-1", "rd-open")
ROUNDS = 6


@pytest.fixture(scope="module", params=["kafka", "kgroup"])
def used(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    drivers: Callable[[str], Driver],
    java_client: Client,
) -> Iterator[tuple[Server, dict[str, Any]]]:
    """A broker killed after transactions of both protocols: ended, timed out, fenced and still open ones.

    With it comes what it said before: offsets by group, state and epoch by transactional id.
    """
    require("java", "mvn")
    with KINDS[request.param](SETTINGS, base=tmp_path_factory.mktemp("logs")) as server:
        case = Case(server, drivers("java"), "tx", [])
        case.call("create_topic", topic="out", partitions=2)
        implicit(case, java_client)
        explicit(server)
        told: dict[str, Any] = {name: state(server, name) for name in IDS}
        told["offsets"] = [case.call("offsets", group=group) for group in ("rd", "tx")]
        server.kill9()
        yield server, told


def implicit(case: Case, client: Client) -> None:
    """Kafka's own client: partitions are added by the batches, epochs rise."""
    pipeline = Pipeline(case, client)
    pipeline.open("a", "tx-java")
    for number in range(ROUNDS):
        pipeline.feed(f"{number}")
        pipeline.copy("a")
        pipeline.end("a", commit=number % 3 != 0)
    case.close(pipeline.member)


def explicit(server: Server) -> None:
    """librdkafka: partitions are added first, epochs stay; each producer is followed by a second one."""
    member = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "rd"})
    for name in ("rd-0", "rd-1", "rd-0", "rd-open"):
        producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        for number in range(ROUNDS):
            producer.begin_transaction()
            producer.produce("out", str(number), partition=number % 2)
            position = TopicPartition("out", number % 2, number)
            producer.send_offsets_to_transaction([position], member.consumer_group_metadata(), 30)
            producer.flush(30)
            if name == "rd-open" and number == 2:
                break
            (producer.abort_transaction if number % 3 == 0 else producer.commit_transaction)(30)
    member.close()


def state(server: Server, name: str) -> tuple[str, int, int]:
    """State, producer id and epoch, by Kafka's tool."""
    told = server.tool("kafka-transactions", "describe", "--transactional-id", name).stdout
    row = dict(zip(*(line.split("\t") for line in told.strip().splitlines()[:2]), strict=False))
    found = {key.strip(): value.strip() for key, value in row.items()}
    return found["TransactionState"], int(found["ProducerId"]), int(found["ProducerEpoch"])


def test_logs_load_without_a_complaint(
    used: tuple[Server, dict[str, Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, told = used
    folder = tmp_path / "copy"
    for path in server.data_dir.iterdir():
        if path.is_dir() and path.name.startswith((*INTERNAL, "out", "tx")):
            shutil.copytree(path, folder / path.name)
    if isinstance(server, KgroupServer):
        for name in ("catalog", "meta.properties"):
            shutil.copy(server.data_dir / name, folder)
    with caplog.at_level(logging.WARNING):
        cluster = Cluster(folder)
        transport = EmbeddedTransport(cluster)
    assert not caplog.records
    assert all(cluster.shards)
    found = transport.request(None, DescribeTransactionsRequest(transactional_ids=IDS))
    for row in found.transaction_states:  # type: ignore[attr-defined]
        expected = told[row.transactional_id]
        assert (row.transaction_state, row.producer_id, row.producer_epoch) == expected
    assert [sorted(rows) for rows in told["offsets"]] == [offsets(transport, group) for group in ("rd", "tx")]
    assert cluster.catalog.allocate_producer_id() > max(told[name][1] for name in IDS)
    transport.close()


def offsets(transport: EmbeddedTransport, group: str) -> list[list[Any]]:
    asked = OffsetFetchRequestGroup(group_id=group, member_id=None, member_epoch=-1, topics=None)
    answer = transport.request(None, OffsetFetchRequest(groups=(asked,)), max_version=9)
    return sorted(
        [topic.name, p.partition_index, p.committed_offset]
        for topic in answer.groups[0].topics  # type: ignore[attr-defined]
        for p in topic.partitions
    )


def test_transaction_log_is_read_as_kafka_reads_it(used: tuple[Server, dict[str, Any]]) -> None:
    """kafka-dump-log decodes each record of ours, and of Kafka's, to the values that we read."""
    server, _ = used
    folders = sorted(server.data_dir.glob("__transaction_state-*"))
    count = 0
    for folder in folders:
        theirs = dumped(folder)
        for record in records_in(PartitionLog(folder).batches()):
            key, value = decode_key(record.key or b""), decode_value(record.value)
            assert value is not None
            told_key, told = theirs.pop(record.offset)
            assert told_key == key.transactional_id
            assert told["producerId"] == value.producer_id
            assert told["producerEpoch"] == value.producer_epoch
            assert told["transactionStatus"] == value.transaction_status
            assert told["transactionTimeoutMs"] == value.transaction_timeout_ms
            assert told.get("clientTransactionVersion", 0) == value.client_transaction_version
            assert told.get("previousProducerId", -1) == value.previous_producer_id
            partitions = told["transactionPartitions"]
            assert (partitions is None) == (value.transaction_partitions is None)
            assert {(t["topic"], tuple(sorted(t["partitionIds"]))) for t in partitions or ()} == {
                (t.topic, tuple(sorted(t.partition_ids))) for t in value.transaction_partitions or ()
            }
            count += 1
        assert not theirs
    assert count > 4 * ROUNDS


def dumped(folder: Path) -> dict[int, tuple[str, dict[str, Any]]]:
    """What kafka-dump-log says of a `__transaction_state` partition: offset → transactional id, value."""
    files = ",".join(str(path) for path in sorted(folder.glob("*.log")))
    arguments = ("--transaction-log-decoder", "--print-data-log", "--files", files)
    done = jvm.tool("kafka-dump-log", *arguments)
    found = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"\| offset: (\d+) .* key: (\{.*?\}\}) payload: (.*)$", line):
            value = json.loads(match[3])
            assert value["version"] == "1"
            found[int(match[1])] = (json.loads(match[2])["data"]["transactionalId"], value["data"])
    return found
