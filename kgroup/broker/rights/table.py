"""What each API needs: one line per API, as Kafka 4.3.1's KafkaApis, ControllerApis and AclApis check it.

The two APIs of kgroup's own stand at the end; what they need is in docs/decisions/0039.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.coordinators import GROUP, SHARE, SHARES_SINCE, TRANSACTION
from kgroup.broker.handlers.fetch import fetch as read_partitions
from kgroup.broker.rights import configs, groups, producers, shares, streams, topics
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.groups import READ_GROUP
from kgroup.broker.rights.producers import CLUSTER_ACTION, WRITE_ID
from kgroup.broker.rights.rule import Each, Entry, Need, Rule, by_id, called, itself, shown, whole
from kgroup.broker.topics import check_name
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.fetch import FetchRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.security.acls import Operation, ResourceType

ALTER, DESCRIBE = Need(Operation.ALTER), Need(Operation.DESCRIBE)
DESCRIBE_CONFIGS = Need(Operation.DESCRIBE_CONFIGS)
_KEYS = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
MANY_KEYS_SINCE = 4


def fetch(asker: Asker, broker: Dispatcher, call: Call[FetchRequest], api: AnyApi) -> Answer:
    """Require Read on each topic, each time its partitions are read; of a replica, ClusterAction."""
    request = call.body
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        return read_partitions(broker, call, lambda topic: CLUSTER_ACTION.met(asker, request))
    return read_partitions(broker, call, partial(asker.may, Operation.READ, ResourceType.TOPIC))


def find_coordinator(
    asker: Asker, broker: Dispatcher, call: Call[FindCoordinatorRequest], api: AnyApi
) -> Answer:
    """Require Describe on each group or transactional id."""
    request = call.body
    kind = _KEYS.get(request.key_type)
    if kind is None:
        if request.key_type == SHARE and call.version >= SHARES_SINCE:
            CLUSTER_ACTION.check(asker, request)
        return api.handle(broker, call)
    if call.version >= MANY_KEYS_SINCE:
        each = Each("coordinator_keys", "coordinators", Operation.DESCRIBE, kind, itself)
        return each(asker, broker, call, api)
    Need(Operation.DESCRIBE, kind, "key").check(asker, request)
    return api.handle(broker, call)


def _valid(broker: Dispatcher, entry: Entry) -> str | None:
    """Return the topic's name; None for an impossible one."""
    try:
        check_name(entry.name)
    except Refused as refused:
        if refused.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
            return None
    name: str = entry.name
    return name


def _topic(
    operation: Operation, entries: str = "topics", answers: str = "topics", name: str = "name"
) -> Each:
    return Each(entries, answers, operation, ResourceType.TOPIC, called(name))


_COMMIT = Each("topics", "topics", Operation.READ, ResourceType.TOPIC, by_id, (READ_GROUP,))
_COMMIT_IN_TRANSACTION = Each(
    "topics", "topics", Operation.READ, ResourceType.TOPIC, by_id, (WRITE_ID, READ_GROUP)
)
_FORGET = Each(
    "topics",
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    called("name"),
    (Need(Operation.DELETE, ResourceType.GROUP, "group_id"),),
    refusal=groups.forgotten,
)
_ALTER_SHARES = Each(
    "topics",
    "responses",
    Operation.READ,
    ResourceType.TOPIC,
    called("topic_name"),
    (READ_GROUP,),
    even_none=True,
    refusal=shares.not_altered,
)
_FORGET_SHARES = Each(
    "topics",
    "responses",
    Operation.READ,
    ResourceType.TOPIC,
    called("topic_name"),
    (Need(Operation.DELETE, ResourceType.GROUP, "group_id"),),
    even_none=True,
    refusal=shares.not_forgotten,
)
_EPOCHS = Each(
    "topics", "topics", Operation.DESCRIBE, ResourceType.TOPIC, called("topic"), unless=CLUSTER_ACTION
)
_LISTED_TRANSACTIONS = shown(
    "transaction_states", Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_id"
)

RULES: Mapping[int, Rule | None] = {
    0: producers.produce,
    1: fetch,
    2: _topic(Operation.DESCRIBE),  # ListOffsets
    3: topics.metadata,
    8: _COMMIT,  # OffsetCommit
    9: groups.offset_fetch,
    10: find_coordinator,
    11: whole(READ_GROUP),  # JoinGroup
    12: whole(READ_GROUP),  # Heartbeat
    13: whole(READ_GROUP),  # LeaveGroup
    14: groups.sync,
    15: groups.describe,
    16: shown("groups", Operation.DESCRIBE, ResourceType.GROUP, "group_id", unless=DESCRIBE),  # ListGroups
    17: None,  # SaslHandshake
    18: None,  # ApiVersions
    19: topics.create,
    20: topics.delete,
    21: _topic(Operation.DELETE),  # DeleteRecords
    22: producers.init_producer_id,
    23: _EPOCHS,  # OffsetForLeaderEpoch
    24: producers.add_partitions,
    25: whole(WRITE_ID, READ_GROUP),  # AddOffsetsToTxn
    26: whole(WRITE_ID),  # EndTxn
    27: producers.write_markers,
    28: _COMMIT_IN_TRANSACTION,  # TxnOffsetCommit
    29: whole(DESCRIBE),  # DescribeAcls
    30: whole(ALTER),  # CreateAcls
    31: whole(ALTER),  # DeleteAcls
    32: configs.describe,
    33: configs.alter,
    36: None,  # SaslAuthenticate
    37: _topic(Operation.ALTER, answers="results"),  # CreatePartitions
    42: groups.delete,
    43: whole(ALTER),  # ElectLeaders
    44: configs.alter,
    45: whole(ALTER),  # AlterPartitionReassignments
    46: whole(DESCRIBE),  # ListPartitionReassignments
    47: _FORGET,  # OffsetDelete
    48: whole(DESCRIBE_CONFIGS),  # DescribeClientQuotas
    50: whole(DESCRIBE),  # DescribeUserScramCredentials
    51: whole(ALTER),  # AlterUserScramCredentials
    57: whole(ALTER),  # UpdateFeatures
    60: topics.describe_cluster,
    61: Each("topics", "topics", Operation.READ, ResourceType.TOPIC, _valid),  # DescribeProducers
    65: producers.describe_transactions,
    66: _LISTED_TRANSACTIONS,
    68: groups.heartbeat,  # ConsumerGroupHeartbeat
    69: groups.describe_consumers,
    71: None,  # GetTelemetrySubscriptions
    72: None,  # PushTelemetry
    74: whole(DESCRIBE_CONFIGS),  # ListConfigResources
    75: topics.describe_partitions,
    76: shares.heartbeat,
    77: shares.describe,
    78: shares.fetch,
    79: shares.acknowledge,
    83: whole(CLUSTER_ACTION),  # InitializeShareGroupState
    84: whole(CLUSTER_ACTION),  # ReadShareGroupState
    85: whole(CLUSTER_ACTION),  # WriteShareGroupState
    86: whole(CLUSTER_ACTION),  # DeleteShareGroupState
    87: whole(CLUSTER_ACTION),  # ReadShareGroupStateSummary
    88: streams.heartbeat,
    89: streams.describe,
    90: shares.describe_offsets,
    91: _ALTER_SHARES,  # AlterShareGroupOffsets
    92: _FORGET_SHARES,  # DeleteShareGroupOffsets
    93: whole(READ_GROUP),  # StreamsGroupTopologyDescriptionUpdate
    10001: whole(READ_GROUP),  # ConsumerGroupPrepareAssignment
    10002: whole(READ_GROUP),  # ConsumerGroupInstallAssignment
}
"""The rule of every API that is served; None for those that need no right."""
