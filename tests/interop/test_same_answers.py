"""The same requests, byte by byte our own, to Kafka and to ours: error codes and what is told must be equal.

Placement is compared on one broker, as that is what the servers of the interop tests have.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kgroup.domain import ZERO_UUID
from kgroup.protocol.messages import create_partitions as growth
from kgroup.protocol.messages import create_topics as creation
from kgroup.protocol.messages import elect_leaders as elections
from kgroup.protocol.messages import update_features as features
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kgroup.runtime.topic_settings import SETTINGS
from tests.house.test_kafka_differences import answers

from .conftest import ASKED, KINDS, require
from .peer import Peer, at_rest, delete, fetched, text
from .waiting import eventually

pytestmark = pytest.mark.interop

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NOT_THERE = 9999

# what differs for a reason: retention is off by default here; Kafka's min.insync.replicas is a dynamic one
OUR_DEFAULTS = {"retention.ms", "min.insync.replicas"}
_NEW_SETTING = re.compile(r"topic setting (\S+): new")
NOT_BUILT = {
    found[1]
    for difference, answer in answers().items()
    if (found := _NEW_SETTING.match(difference)) and answer.startswith("not built")
}
"""Settings of topics since Kafka 4.4 that docs/kafka-4.4.md leaves out."""

Seen = list[Any]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Peer]]:
    """Kafka and ours, both with nothing in them."""
    require("java", "mvn")
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    with KINDS["kafka"](base=folders["kafka"]) as kafka, KINDS["kgroup"](base=folders["kgroup"]) as ours:
        both = [Peer(kafka), Peer(ours)]
        yield both
        for peer in both:
            peer.close()


def records_are_deleted(peer: Peer) -> Seen:
    seen: Seen = [peer.create(partitions=2).error_code]
    seen += [peer.produce(3) for _ in range(3)]
    for offset in (4, 2, 10, -2, 9, -1):
        seen.append(delete(peer, (peer.topic, 0, offset)))
        seen += [peer.list(peer.topic, 0, timestamp) for timestamp in (-2, -1)]
        seen += [fetched(peer.fetch((0, -1), {0: at})) for at in (0, 4, 9, 10)]
        seen.append(peer.produce())
    seen.append(delete(peer, (peer.topic, 7, 0), ("nobody", 0, 0), (peer.topic, 1, 0)))
    other = f"{peer.topic}-c"
    seen.append(peer.create(other, cleanup_policy="compact").error_code)
    seen.append(delete(peer, (other, 0, 0)))
    return seen


def sessions_are_kept(peer: Peer) -> Seen:
    seen: Seen = [peer.create(partitions=3).error_code]
    first = peer.fetch((0, 0), {0: 0, 1: 0, 9: 0})
    seen.append(fetched(first))
    at = first.session_id
    seen.append(fetched(peer.fetch((at, 1), {})))
    peer.produce(2)
    seen.append(fetched(peer.fetch((at, 2), {})))
    seen.append(fetched(peer.fetch((at, 3), {})))
    seen.append(fetched(peer.fetch((at, 3), {})))  # an epoch again
    seen.append(fetched(peer.fetch((at, 4), {0: 2, 2: 5}, forget=(9,))))
    seen.append(fetched(peer.fetch((at, 5), {2: 0})))
    seen.append(fetched(peer.fetch((at, 6), {}, version=13)))  # by id in a session by name
    seen.append(delete(peer, (peer.topic, 0, 1)))
    seen.append(fetched(peer.fetch((at, 6), {})))
    seen.append(fetched(peer.fetch((at, 7), {}, forget=(0, 1, 2))))
    seen.append(fetched(peer.fetch((at, 8), {})))
    seen.append(fetched(peer.fetch((at, 0), {0: 0})))
    seen.append(fetched(peer.fetch((12345, 1), {0: 0})))
    seen.append(fetched(peer.fetch((0, 0), {})))
    seen.append(fetched(peer.fetch((0, -1), {0: 0, 1: 1})))
    return seen


def sessions_by_id_outlive_their_topic(peer: Peer) -> Seen:
    topic_id = peer.create(partitions=2).topic_id
    first = peer.fetch((0, 0), {0: 0, 1: 0}, version=18, topic_id=topic_id)
    seen: Seen = [fetched(first)]
    deletion = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=peer.topic, topic_id=ZERO_UUID),), timeout_ms=5000
    )
    seen.append([t.error_code for t in peer(deletion).responses])
    lost = itertools.count(1)

    def gone() -> Any:
        answer = peer.fetch((first.session_id, next(lost)), {}, version=18)
        return fetched(answer) if len(fetched(answer)[2]) == 2 else None

    seen.append(eventually(gone))
    seen.append(peer.create(partitions=2).error_code)
    seen.append(fetched(peer.fetch((first.session_id, next(lost)), {}, version=18)))
    seen.append(fetched(peer.fetch((0, 0), {0: 0}, version=18, topic_id=topic_id)))
    return seen


def leader_epochs_are_checked(peer: Peer) -> Seen:
    seen: Seen = [peer.create().error_code, peer.produce()]
    seen += [fetched(peer.fetch((0, -1), {0: 0}, epoch=epoch)) for epoch in (-1, 0, 1)]
    return seen


BAD_VALUES = {
    "cleanup.policy": ("delete,delete", "", "shred", " compact , delete "),
    "compression.gzip.level": ("0", "-1"),
    "compression.lz4.level": ("0",),
    "compression.type": ("none",),
    "compression.zstd.level": ("23",),
    "flush.messages": ("0",),
    "flush.ms": ("-1",),
    "leader.replication.throttled.replicas": ("0:1,x", "*"),
    "follower.replication.throttled.replicas": ("0:1, 1:2",),
    "local.retention.bytes": ("-3",),
    "max.compaction.lag.ms": ("0",),
    "max.message.bytes": ("2147483648", "+7", "1_0"),
    "message.timestamp.after.max.ms": ("-1",),
    "message.timestamp.type": ("createtime",),
    "min.cleanable.dirty.ratio": ("1.01", ".5", "1e-1", "half"),
    "min.insync.replicas": ("0",),
    "preallocate": ("TRUE", "1"),
    "remote.storage.enable": ("true",),
    "remote.log.copy.disable": ("true",),
    "retention.ms": ("-2",),
    "retention.bytes": ("-9",),
    "segment.bytes": ("1048575", "1048576"),
    "segment.index.bytes": ("3",),
    "segment.ms": ("0",),
    "unclean.leader.election.enable": ("maybe",),
    "unknown.setting": ("1",),
    "internal.segment.bytes": ("1",),
}


def topics_take_settings(peer: Peer) -> Seen:
    seen: Seen = []
    bad = [(name, value) for name, values in BAD_VALUES.items() for value in values]
    for number, (name, value) in enumerate(bad):
        made = peer.create(f"{peer.topic}-{number}", **{name: value})
        seen.append((name, value, made.error_code))
    lags = {"min_compaction_lag_ms": "9", "max_compaction_lag_ms": "8"}
    seen.append(peer.create(f"{peer.topic}-lags", **lags).error_code)
    made = peer.create(retention_ms="77", max_message_bytes=" 99", cleanup_policy="compact, delete")
    seen.append(
        {
            entry.name: (entry.value, entry.config_source, entry.read_only)
            for entry in made.configs
            if entry.name not in OUR_DEFAULTS | NOT_BUILT or entry.config_source == 1
        }
    )
    code, entries = peer.describe(TOPIC, peer.topic)
    entries = {name: entry for name, entry in entries.items() if name not in NOT_BUILT}
    seen.append((code, {k: v for k, v in entries.items() if k not in OUR_DEFAULTS or v[1] == 1}))
    seen.append(len(entries) == len(SETTINGS))
    seen += [peer.describe(TOPIC, name) for name in ("nobody", "a b", "")]
    return seen


def cleanup_policy_and_throttle(peer: Peer) -> Any:
    return peer.describe(TOPIC, peer.topic, "cleanup.policy", "leader.replication.throttled.replicas")


def brokers_settings(peer: Peer) -> Any:
    keys = ("message.max.bytes", "log.cleanup.policy", "max.connections")
    return (
        peer.describe(BROKER, str(peer.node), *keys),
        peer.describe(BROKER, "", *keys),
        peer.describe(TOPIC, peer.topic, "max.message.bytes", "cleanup.policy"),
    )


def settings_of_topics_change(peer: Peer) -> Seen:
    seen: Seen = [peer.create().error_code]
    for steps in [
        [(APPEND, "cleanup.policy", "compact")],
        [(APPEND, "cleanup.policy", "compact,delete")],
        [(SUBTRACT, "cleanup.policy", "delete")],
        [(SUBTRACT, "cleanup.policy", "compact")],
        [(DELETE, "cleanup.policy", None)],
        [(SUBTRACT, "cleanup.policy", "nothing")],
        [(APPEND, "cleanup.policy", "shred")],
        [(APPEND, "retention.ms", "5")],
        [(SUBTRACT, "unknown.setting", "5")],
        [(SET, "unknown.setting", "5")],
        [(SET, "retention.ms", None)],
        [(SET, "retention.ms", "5"), (DELETE, "retention.ms", None)],
        [(APPEND, "leader.replication.throttled.replicas", "0:1"), (SET, "retention.ms", "9")],
        [(APPEND, "leader.replication.throttled.replicas", "1:1")],
    ]:
        seen.append((steps, peer.alter(TOPIC, peer.topic, *steps, check=True)))
        seen.append((steps, peer.alter(TOPIC, peer.topic, *steps)))
        seen.append(at_rest(peer, cleanup_policy_and_throttle))
    seen.append(peer.alter(TOPIC, "nobody", (SET, "retention.ms", "9")))
    seen.append(peer.alter(TOPIC, "nobody", (SET, "retention.ms", "x")))
    seen.append(peer.alter(TOPIC, "", (SET, "retention.ms", "9")))
    seen.append(peer.alter(GROUP, "", (SET, "consumer.session.timeout.ms", "9")))
    seen.append(peer.alter(GROUP, "g", (APPEND, "consumer.session.timeout.ms", "50000")))
    seen.append(peer.alter(99, "g", (SET, "consumer.session.timeout.ms", "50000")))
    return seen


def settings_of_brokers_change(peer: Peer) -> Seen:
    me, all_of_them = str(peer.node), ""
    seen: Seen = [peer.create().error_code]
    largest, policy = "message.max.bytes", "log.cleanup.policy"
    for entity, steps in [
        (me, [(SET, largest, "400")]),
        (all_of_them, [(SET, largest, "500"), (APPEND, policy, "compact")]),
        (me, [(DELETE, largest, None)]),
        (me, [(SET, largest, "-1")]),
        (me, [(SET, largest, "many")]),
        (me, [(APPEND, largest, "1")]),
        (me, [(APPEND, "nonsense", "1")]),
        (me, [(SET, "broker.id", "1")]),
        (me, [(SET, "log.dirs", "x")]),
        (str(NOT_THERE), [(SET, largest, "1")]),
        ("one", [(SET, largest, "1")]),
        (me, [(SET, largest, None)]),
        (me, [(SET, largest, "1"), (SET, largest, "2")]),
        (me, [(SUBTRACT, policy, "delete"), (SET, "max.connections", "900")]),
        (all_of_them, [(DELETE, largest, None), (DELETE, policy, None)]),
        (me, [(DELETE, "max.connections", None), (DELETE, policy, None)]),
    ]:
        seen.append((entity == me, steps, peer.alter(BROKER, entity, *steps, check=True)))
        seen.append((entity == me, steps, peer.alter(BROKER, entity, *steps)))
        seen.append(at_rest(peer, brokers_settings))
    seen += [peer.describe(BROKER, name)[0] for name in (str(NOT_THERE), "one")]
    return seen


def partitions_are_placed(peer: Peer) -> Seen:
    me = peer.node
    seen: Seen = []

    def create(
        name: str, placed: list[tuple[int, tuple[int, ...]]], count: int = -1, factor: int = -1
    ) -> None:
        assignments = tuple(
            creation.CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in placed
        )
        topic = creation.CreatableTopic(
            name=name, num_partitions=count, replication_factor=factor, assignments=assignments
        )
        (made,) = peer(creation.CreateTopicsRequest(topics=(topic,))).topics
        seen.append((made.error_code, text(peer, made), made.num_partitions, made.replication_factor))

    create(peer.topic, [(1, (me,)), (0, (me,))])
    create(f"{peer.topic}-2", [(0, (me,)), (0, (me,))])
    create(f"{peer.topic}-3", [(0, ())])
    create(f"{peer.topic}-4", [(0, (me, me))])
    create(f"{peer.topic}-6", [(0, (me,)), (2, (me,))])
    create(f"{peer.topic}-7", [(0, (me,))], count=1)
    create(f"{peer.topic}-8", [(0, (me,))], factor=1)
    create(f"{peer.topic}-9", [], count=0, factor=0)
    create(f"{peer.topic}-10", [], count=0, factor=1)
    create(f"{peer.topic}-11", [], count=1, factor=2)
    create(f"{peer.topic}-12", [], count=-2, factor=1)
    peer.settle(peer.topic, 2)
    for count, placed in [
        (2, None),
        (1, None),
        (3, ((me,), (me,))),
        (3, ((),)),
        (3, ((me, me),)),
        (3, ((me,),)),
    ]:
        assignments = None
        if placed is not None:
            assignments = tuple(growth.CreatePartitionsAssignment(broker_ids=ids) for ids in placed)
        topic = growth.CreatePartitionsTopic(name=peer.topic, count=count, assignments=assignments)
        (grown,) = peer(growth.CreatePartitionsRequest(topics=(topic,), timeout_ms=5000)).results
        seen.append((count, grown.error_code, text(peer, grown) if placed else None))
    for kind in (0, 1, 7):
        for topics in ((elections.TopicPartitions(topic=peer.topic, partitions=(0, 9)),), None):
            answer = peer(elections.ElectLeadersRequest(election_type=kind, topic_partitions=topics))
            results = [
                (p.partition_id, p.error_code)
                for t in answer.replica_election_results
                for p in t.partition_result
            ]
            seen.append((kind, answer.error_code, results))
    (found,) = peer(MetadataRequest(topics=(MetadataRequestTopic(name=peer.topic),)), 12).topics
    seen += [
        (p.partition_index, p.leader_id == me, p.leader_epoch, len(p.replica_nodes), len(p.isr_nodes))
        for p in sorted(found.partitions, key=lambda p: p.partition_index)
    ]
    return seen


def features_are_updated(peer: Peer) -> Seen:
    seen: Seen = []
    for version, check, updates in [
        (2, True, [("group.version", 0, 2)]),
        (2, False, [("group.version", 0, 1)]),
        (2, False, [("group.version", 2, 1)]),
        (2, False, [("group.version", -1, 1)]),
        (2, False, [("group.version", 1, 9)]),
        (2, False, [("nonsense", 1, 1)]),
        (2, False, [("transaction.version", 1, 2), ("nonsense", 1, 1)]),
        (1, False, [("transaction.version", 1, 3)]),
        (1, False, [("transaction.version", 2, 2)]),
        (0, False, [("transaction.version", 2, 1)]),
        (2, False, [("transaction.version", 2, 1)]),
    ]:
        keys = tuple(
            features.FeatureUpdateKey(feature=n, max_version_level=v, upgrade_type=k) for n, v, k in updates
        )
        answer = peer(features.UpdateFeaturesRequest(feature_updates=keys, validate_only=check), version)
        results = [(r.feature, r.error_code) for r in answer.results]
        seen.append((updates, answer.error_code, text(peer, answer), results))
    return seen


@pytest.mark.parametrize(
    "story",
    [
        records_are_deleted,
        sessions_are_kept,
        sessions_by_id_outlive_their_topic,
        leader_epochs_are_checked,
        topics_take_settings,
        settings_of_topics_change,
        settings_of_brokers_change,
        partitions_are_placed,
        features_are_updated,
    ],
    ids=lambda story: story.__name__,
)
@pytest.mark.skipif(
    set(ASKED) != {"kafka", "kgroup"}, reason="one server alone has nothing to be compared to"
)
def test_answers_are_kafkas(peers: list[Peer], story: Callable[[Peer], Seen]) -> None:
    for peer in peers:
        peer.topic = f"t{uuid.uuid4().hex[:8]}"
    kafkas, ours = (story(peer) for peer in peers)
    assert [pair for pair in zip(ours, kafkas, strict=True) if pair[0] != pair[1]] == []
