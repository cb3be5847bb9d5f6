"""Requests about topics, records, settings and the cluster."""

from __future__ import annotations

import time

from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import create_acls, delete_acls
from kgroup.protocol.messages import create_partitions as grow
from kgroup.protocol.messages import create_topics as create
from kgroup.protocol.messages import delete_records as shorten
from kgroup.protocol.messages import delete_topics as delete
from kgroup.protocol.messages import describe_configs as configs
from kgroup.protocol.messages import elect_leaders as elect
from kgroup.protocol.messages import incremental_alter_configs as alter
from kgroup.protocol.messages import update_features as features
from kgroup.protocol.messages.describe_acls import DescribeAclsRequest
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest
from kgroup.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kgroup.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
)
from kgroup.protocol.messages.describe_topic_partitions import TopicRequest as PagedTopic
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kgroup.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kgroup.security.acls import CLUSTER_NAME, Operation, ResourceType

from .cases import GROUP, TOPIC, Case, Names, O, each, on, on_cluster
from .grants import Right
from .world import World

OF_TOPIC, OF_BROKER, OF_GROUP = 2, 4, 32
NO_SUCH = "no-such"


def records() -> bytes:
    return encode_batch([LogRecord(None, b"v", timestamp_ms=int(time.time() * 1000))])


def produce(world: World, names: Names) -> Message:
    data = (PartitionProduceData(index=0, records=records()),)
    topics = tuple(TopicProduceData(name=name, partition_data=data) for name in (names.a, names.b, NO_SUCH))
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)


def produce_by_id(world: World, names: Names) -> Message:
    data = (PartitionProduceData(index=0, records=records()),)
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(TopicProduceData(topic_id=each, partition_data=data) for each in ids)
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)


def _fetched() -> tuple[FetchPartition, ...]:
    return (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20),)


def fetch(world: World, names: Names) -> Message:
    topics = tuple(FetchTopic(topic=n, partitions=_fetched()) for n in (names.a, names.b, NO_SUCH))
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)


def fetch_by_id(world: World, names: Names) -> Message:
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(FetchTopic(topic_id=each, partitions=_fetched()) for each in ids)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)


def list_offsets(world: World, names: Names) -> Message:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    topics = tuple(ListOffsetsTopic(name=n, partitions=partitions) for n in (names.a, names.b, NO_SUCH))
    return ListOffsetsRequest(replica_id=-1, topics=topics)


def epochs(world: World, names: Names) -> Message:
    partitions = (OffsetForLeaderPartition(partition=0, leader_epoch=0),)
    topics = tuple(OffsetForLeaderTopic(topic=n, partitions=partitions) for n in (names.a, names.b))
    return OffsetForLeaderEpochRequest(topics=topics)


def metadata(world: World, names: Names) -> Message:
    topics = tuple(MetadataRequestTopic(name=n) for n in (names.a, names.b, NO_SUCH))
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


def metadata_of_all(world: World, names: Names) -> Message:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def metadata_of_all_0(world: World, names: Names) -> Message:
    return MetadataRequest(topics=())


def metadata_by_id(world: World, names: Names) -> Message:
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(MetadataRequestTopic(name=None, topic_id=each) for each in ids)
    return MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def metadata_creating(world: World, names: Names) -> Message:
    """Of a topic that is not there; what comes of an allowed creation is another matter than rights."""
    return MetadataRequest(
        topics=(MetadataRequestTopic(name=names.a), MetadataRequestTopic(name=f"{names.base}-new")),
        allow_auto_topic_creation=True,
    )


def describe_partitions(world: World, names: Names) -> Message:
    topics = tuple(PagedTopic(name=n) for n in (names.a, names.b, NO_SUCH))
    return DescribeTopicPartitionsRequest(topics=topics)


def describe_all_partitions(world: World, names: Names) -> Message:
    return DescribeTopicPartitionsRequest(
        cursor=RequestCursor(topic_name=names.base, partition_index=0), response_partition_limit=3
    )


def create_topics(world: World, names: Names) -> Message:
    wanted = [f"{names.base}-new", names.a, f"{names.base}-other"]
    topics = tuple(create.CreatableTopic(name=n, num_partitions=2, replication_factor=1) for n in wanted)
    return create.CreateTopicsRequest(topics=topics)


def delete_topics(world: World, names: Names) -> Message:
    topics = tuple(delete.DeleteTopicState(name=n, topic_id=bytes(16)) for n in (names.a, names.b, NO_SUCH))
    return delete.DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


def delete_topics_by_id(world: World, names: Names) -> Message:
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(delete.DeleteTopicState(name=None, topic_id=each) for each in ids)
    return delete.DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


def delete_topics_5(world: World, names: Names) -> Message:
    return delete.DeleteTopicsRequest(topic_names=(names.a, NO_SUCH), timeout_ms=10_000)


def delete_records(world: World, names: Names) -> Message:
    partitions = (shorten.DeleteRecordsPartition(partition_index=0, offset=0),)
    topics = tuple(shorten.DeleteRecordsTopic(name=n, partitions=partitions) for n in (names.a, names.b))
    return shorten.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)


def create_partitions(world: World, names: Names) -> Message:
    topics = tuple(
        grow.CreatePartitionsTopic(name=n, count=3, assignments=None) for n in (names.a, names.b, NO_SUCH)
    )
    return grow.CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=True)


def describe_configs(world: World, names: Names) -> Message:
    wanted = ((OF_TOPIC, names.a), (OF_TOPIC, names.b), (OF_GROUP, names.group), (OF_BROKER, ""))
    resources = tuple(
        configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in wanted
    )
    return configs.DescribeConfigsRequest(resources=resources)


def alter_configs(world: World, names: Names) -> Message:
    wanted = (
        (OF_TOPIC, names.a, "retention.ms", "100000"),
        (OF_TOPIC, names.b, "retention.ms", "100000"),
        (OF_TOPIC, NO_SUCH, "retention.ms", "100000"),
        (OF_GROUP, names.group, "consumer.session.timeout.ms", "45000"),
        (OF_BROKER, "", "log.cleaner.backoff.ms", "15000"),
    )
    resources = tuple(
        alter.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=(alter.AlterableConfig(name=key, config_operation=0, value=value),),
        )
        for kind, name, key, value in wanted
    )
    return alter.IncrementalAlterConfigsRequest(resources=resources, validate_only=True)


def alter_nonsense(world: World, names: Names) -> Message:
    """Changes found wrong before rights are looked at, and one that is not."""
    twice = (alter.AlterableConfig(name="retention.ms", config_operation=0, value="1000"),) * 2
    fine = (alter.AlterableConfig(name="retention.ms", config_operation=0, value="1000"),)
    fixed = (alter.AlterableConfig(name="num.partitions", config_operation=0, value="3"),)
    resources = (
        alter.AlterConfigsResource(resource_type=OF_TOPIC, resource_name=names.a, configs=twice),
        alter.AlterConfigsResource(resource_type=OF_TOPIC, resource_name=names.b, configs=fine),
        alter.AlterConfigsResource(resource_type=OF_BROKER, resource_name="", configs=fixed),
    )
    return alter.IncrementalAlterConfigsRequest(resources=resources, validate_only=True)


def describe_producers(world: World, names: Names) -> Message:
    topics = tuple(
        TopicRequest(name=n, partition_indexes=(0,)) for n in (names.a, names.b, NO_SUCH, "not a name")
    )
    return DescribeProducersRequest(topics=topics)


def describe_cluster(world: World, names: Names) -> Message:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def elect_leaders(world: World, names: Names) -> Message:
    wanted = (elect.TopicPartitions(topic=names.a, partitions=(0,)),)
    return elect.ElectLeadersRequest(topic_partitions=wanted)


def update_features(world: World, names: Names) -> Message:
    update = features.FeatureUpdateKey(feature="group.version", max_version_level=1)
    return features.UpdateFeaturesRequest(feature_updates=(update,), validate_only=True)


def describe_acls(world: World, names: Names) -> Message:
    return DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=CLUSTER_NAME,
        pattern_type_filter=2,
        operation=Operation.ANY,
        permission_type=1,
    )


def new_acls(world: World, names: Names) -> Message:
    """One that is fine, and those that are no rules."""
    wanted = (
        (2, names.a, 3, "User:dora", 3, 3),
        (4, "not-the-cluster", 3, "User:dora", 3, 3),
        (2, "", 3, "User:dora", 3, 3),
        (1, names.a, 3, "User:dora", 3, 3),
        (2, names.a, 2, "User:dora", 3, 3),
        (2, names.a, 3, "dora", 3, 3),
        (2, names.a, 3, "User:dora", 1, 3),
        (2, names.a, 3, "User:dora", 3, 1),
        (3, names.group, 4, "Role:readers", 3, 2),
    )
    return create_acls.CreateAclsRequest(
        creations=tuple(
            create_acls.AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=principal,
                host="*",
                operation=operation,
                permission_type=permission,
            )
            for kind, name, pattern, principal, operation, permission in wanted
        )
    )


def gone_acls(world: World, names: Names) -> Message:
    """Those of dora, of whom there are none, by two filters."""
    wanted = delete_acls.DeleteAclsFilter(
        resource_type_filter=1,
        pattern_type_filter=1,
        principal_filter="User:dora",
        operation=1,
        permission_type=1,
    )
    return delete_acls.DeleteAclsRequest(filters=(wanted, wanted))


ALTERED = each(
    on(O.ALTER_CONFIGS, TOPIC, "a"), on(O.ALTER_CONFIGS, GROUP, "group"), on_cluster(O.ALTER_CONFIGS)
)
SETTLED = each(
    on(O.DESCRIBE_CONFIGS, TOPIC, "a"),
    on(O.DESCRIBE_CONFIGS, GROUP, "group"),
    on_cluster(O.DESCRIBE_CONFIGS),
)


def _new(names: Names) -> list[Right]:
    return [
        Right(O.CREATE, TOPIC, f"{names.base}-new"),
        Right(O.DESCRIBE_CONFIGS, TOPIC, f"{names.base}-new"),
        Right(O.CREATE, TOPIC, names.a),
    ]


def _found_and_made(names: Names) -> list[Right]:
    return [
        Right(O.DESCRIBE, TOPIC, names.a),
        Right(O.DESCRIBE, TOPIC, f"{names.base}-new"),
        Right(O.CREATE, TOPIC, f"{names.base}-new"),
    ]


CASES = (
    Case("produce", produce, on(O.WRITE, TOPIC, "a"), 12),
    Case("produce-by-id", produce_by_id, on(O.WRITE, TOPIC, "a")),
    Case("fetch", fetch, on(O.READ, TOPIC, "a"), 12),
    Case("fetch-by-id", fetch_by_id, on(O.READ, TOPIC, "a")),
    Case("list-offsets", list_offsets, on(O.DESCRIBE, TOPIC, "a")),
    Case("epochs", epochs, on(O.DESCRIBE, TOPIC, "a")),
    Case("epochs-as-broker", epochs, on_cluster(O.CLUSTER_ACTION)),
    Case("metadata", metadata, each(on(O.DESCRIBE, TOPIC, "a"), on_cluster(O.DESCRIBE)), 10),
    Case("metadata-of-all", metadata_of_all, on(O.DESCRIBE, TOPIC, "a")),
    Case("metadata-of-all-0", metadata_of_all_0, on(O.DESCRIBE, TOPIC, "a"), 0),
    Case("metadata-by-id", metadata_by_id, on(O.DESCRIBE, TOPIC, "a")),
    Case("metadata-creating", metadata_creating, _found_and_made),
    Case("describe-partitions", describe_partitions, on(O.DESCRIBE, TOPIC, "a")),
    Case("describe-all-partitions", describe_all_partitions, on(O.DESCRIBE, TOPIC, "b")),
    Case("create-topics", create_topics, _new, changes=True),
    Case("create-topics-on-cluster", create_topics, on_cluster(O.CREATE), changes=True),
    Case("delete-topics", delete_topics, on(O.DELETE, TOPIC, "a"), changes=True),
    Case("delete-topics-by-id", delete_topics_by_id, on(O.DELETE, TOPIC, "a"), changes=True),
    Case("delete-topics-5", delete_topics_5, on(O.DELETE, TOPIC, "a"), 5, changes=True),
    Case("delete-topics-on-cluster", delete_topics, on_cluster(O.DELETE), changes=True),
    Case("delete-records", delete_records, on(O.DELETE, TOPIC, "a")),
    Case("create-partitions", create_partitions, on(O.ALTER, TOPIC, "a")),
    Case("describe-configs", describe_configs, SETTLED),
    Case("alter-configs", alter_configs, ALTERED),
    Case("alter-nonsense", alter_nonsense, ALTERED),
    Case("describe-producers", describe_producers, on(O.READ, TOPIC, "a")),
    Case("describe-cluster", describe_cluster, on_cluster(O.DESCRIBE)),
    Case("elect-leaders", elect_leaders, on_cluster(O.ALTER)),
    Case("update-features", update_features, on_cluster(O.ALTER)),
    Case("describe-acls", describe_acls, on_cluster(O.DESCRIBE)),
    Case("create-acls", new_acls, on_cluster(O.ALTER)),
    Case("delete-acls", gone_acls, on_cluster(O.ALTER)),
)
