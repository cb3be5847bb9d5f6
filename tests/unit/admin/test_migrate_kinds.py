"""Whose an empty group was, by what it left: of Kafka Streams it must not be converted."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from kgroup.admin.migrate.client_kinds import CONSUMERS, KAFKA_STREAMS, kinds_of_empty
from kgroup.admin.migrate.models import UPGRADE
from kgroup.admin.migrate.plan import plan_migration
from kgroup.admin.read.applications import is_streams_metadata
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol import group_records as gr
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group

STREAMS_TIME = base64.b64encode(b"\1" + (1_700_000_000_000).to_bytes(8, "big")).decode()
NO_TIME = base64.b64encode(b"\1" + b"\xff" * 8).decode()
WITH_PROCESSORS = base64.b64encode(b"\2" + (1_700_000_000_000).to_bytes(8, "big") + b"\0\0\0\1x").decode()


def cluster(
    committed: dict[str, str] | None = None, log: bytes = b"", topics: dict[str, int] | None = None
) -> FakeCluster:
    """An empty group g with commits of this metadata by partition, and this offsets log."""
    fake = FakeCluster(topics={"orders": 2, OFFSETS_TOPIC: 1, **(topics or {})})
    groups = Groups(fake).add(classic_group("g", state="Empty"))
    groups.ends = {f"{OFFSETS_TOPIC}:0": 0}
    places = committed or {}
    groups.committed["g"] = dict.fromkeys(places, 1)
    plain = fake.handlers[of.OffsetFetchRequest]

    def fetch(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        told = plain(node, request)
        assert isinstance(told, of.OffsetFetchResponse)
        named = tuple(
            replace(t, partitions=tuple(replace(p, metadata=text) for p in t.partitions))
            for t, text in zip(told.groups[0].topics, places.values(), strict=True)
        )
        return replace(told, groups=(replace(told.groups[0], topics=named),))

    def read(node: int, request: f.FetchRequest) -> f.FetchResponse:
        part = f.PartitionData(partition_index=0, records=log, high_watermark=0)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    return fake.on(of.OffsetFetchRequest, fetch).on(f.FetchRequest, read)


def records(*assignors: str | None) -> bytes:
    """Records of the group, one for each assignor it had; None for the record of an empty group."""
    log = b""
    for number, assignor in enumerate(assignors):
        value = gr.GroupMetadataValue(protocol_type="consumer", generation=number, protocol=assignor)
        record = LogRecord(gr.encode_key(gr.GroupMetadataKey(group="g")), gr.encode_value(value))
        log += encode_batch([record], base_offset=number, timestamp_ms=1)
    return log


@pytest.mark.parametrize("text", [STREAMS_TIME, NO_TIME, WITH_PROCESSORS])
def test_metadata_of_kafka_streams(text: str) -> None:
    assert is_streams_metadata(text)


@pytest.mark.parametrize(
    "text", ["", "mine", "AQ==", "kgroup plan=1 by=a", base64.b64encode(b"\1" + b"\x7f" * 8).decode(), "ä"]
)
def test_metadata_of_others(text: str) -> None:
    assert not is_streams_metadata(text)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (cluster({"orders:0": STREAMS_TIME}), KAFKA_STREAMS),
        (cluster({"orders:0": "", "orders:1": NO_TIME}), KAFKA_STREAMS),
        (cluster({"orders:0": STREAMS_TIME}, topics={"g-counts-changelog": 1}), KAFKA_STREAMS),
        (cluster({"orders:0": ""}, topics={"g-counts-changelog": 1}), None),
        (cluster({"orders:0": ""}, topics={"g2-counts-changelog": 1}), CONSUMERS),
        (cluster({"orders:0": ""}, records("range", None), {"g-2-counts-changelog": 1}), CONSUMERS),
        (cluster(log=records("stream", None), topics={"g-counts-changelog": 1}), KAFKA_STREAMS),
        (cluster({"orders:0": "mine"}), CONSUMERS),
        (cluster(), None),
        (cluster(log=records("stream", None)), KAFKA_STREAMS),
        (cluster(log=records("range", None)), CONSUMERS),
        (cluster(log=records(None)), None),
    ],
)
def test_by_what_it_left(made: FakeCluster, kind: str | None) -> None:
    found = kinds_of_empty(made.cluster(), ["g"], made.topics)["g"]
    assert (found.name, bool(found.because)) == (kind, True)


def test_a_longer_name_s_internal_topic_does_not_block_a_group_of_consumers() -> None:
    """g-2-counts-changelog is the application g-2's: the group g was blocked as one of Kafka Streams."""
    made = cluster({"orders:0": ""}, topics={"g-2-counts-changelog": 1})
    made.served[18] = range(3)
    told = plan_migration(made.cluster(), "g", UPGRADE)
    assert (told.verdict, told.blockers) == ("unknown", ())
    (used,) = [check for check in told.checks if check.code == "used_by"]
    assert used.status == "unknown" and "g-2-counts-changelog" in used.message


def test_commits_that_may_be_hidden_prove_nothing() -> None:
    """Brokers leave out the offsets of topics that may not be seen: those could be Kafka Streams'."""
    made = cluster({"orders:0": ""})
    made.allowed_topics = {"orders", OFFSETS_TOPIC}
    found = kinds_of_empty(made.cluster(), ["g"], made.topics)["g"]
    assert (found.name, found.code) == (None, "TOPIC_AUTHORIZATION_FAILED")


def test_plans_of_empty_groups() -> None:
    """They were READY, and executing them made groups that the application could not join."""

    def denied(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        told = (
            DescribeConfigsResult(error_code=code, resource_name=r.resource_name) for r in request.resources
        )
        return DescribeConfigsResponse(results=tuple(told))

    verdicts = []
    for made in (cluster({"orders:0": STREAMS_TIME}), cluster(), cluster({"orders:0": ""})):
        made.on(DescribeConfigsRequest, denied)
        made.served[18] = range(3)
        verdicts.append(plan_migration(made.cluster(), "g", UPGRADE))
    assert [each.verdict for each in verdicts] == ["blocked", "unknown", "unknown"]
    used = [[c.status for c in each.checks if c.code in ("kafka_streams", "used_by")] for each in verdicts]
    assert used == [["block"], ["unknown"], ["ok"]]
