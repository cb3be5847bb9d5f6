"""The anatomy of requests: one row per API, for refusals, for the rights it needs, and for rules of faults.

A right is as Kafka 4.3.1's KafkaApis, ControllerApis and AclApis check it; those of kgroup's own two APIs are
in docs/decisions/0039. A refusal is as `getErrorResponse` of Kafka's request makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.domain import NO_OFFSET
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.anatomy import (
    FREE,
    GROUP,
    PARTITION,
    RESOURCE,
    TOPIC,
    TXN_ID,
    Anatomy,
    Array,
    By,
    Each,
    Entry,
    Shown,
    Whole,
)
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kgroup.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.registry import ApiKey
from kgroup.security.acls import Operation, ResourceType
from kgroup.security.needs import Need

READ_GROUP = Need(Operation.READ, ResourceType.GROUP, "group_id")
DELETE_GROUP = Need(Operation.DELETE, ResourceType.GROUP, "group_id")
WRITE_ID = Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
ALTER, DESCRIBE = Need(Operation.ALTER), Need(Operation.DESCRIBE)
DESCRIBE_CONFIGS = Need(Operation.DESCRIBE_CONFIGS)
CLUSTER_ACTION = Need(Operation.CLUSTER_ACTION)


def refusal(request: Message, code: ErrorCode, message: str | None = None) -> Message:
    """Return the response to `request` that refuses all of it with `code`.

    If the protocol has a place for `message`, it is there; if errors stand per item, on each item.
    """
    return ANATOMY[request.API].refusal(request, code, message, registry.response_class(request.API))


def refusal_of_entries(request: Message, code: ErrorCode) -> Message:
    """Return the response to `request` that refuses all of its entries, even if `refusal` names none."""
    row, response = ANATOMY[request.API], registry.response_class(request.API)
    if not row.on_top or row.entries is None:
        return refusal(request, code)
    made: Message = response(**{row.entries.answered: row.entries.refused(request, code, None, response)})
    return made


def _join(request: JoinGroupRequest, code: ErrorCode, _: str | None) -> Message:
    """Refuse a member by the id that it has."""
    return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name=None)


_KEYS = Array(
    "coordinator_keys",
    "coordinators",
    ("key=",),
    kind=GROUP,
    failed={"node_id": -1, "port": -1},
    explained=False,
)
COORDINATOR_MESSAGES = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message "
        "was sent to an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's own, which versions 1 to 3 carry even without an error; later ones carry an empty text."""


def _coordinator(request: FindCoordinatorRequest, code: ErrorCode, message: str | None) -> Message:
    """Refuse with a text of the code even where there is no message."""
    return FindCoordinatorResponse(
        error_code=code,
        error_message=message or COORDINATOR_MESSAGES.get(code),
        node_id=-1,
        port=-1,
        coordinators=_KEYS.refused(request, code, None, FindCoordinatorResponse),
    )


def _scram_changes(request: Entry, code: ErrorCode, message: str | None) -> Message:
    """Refuse each user once, of two arrays."""
    users = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user in users
        )
    )


_PARTITIONS = Array("partitions", "partitions", ("partition_index",), kind=PARTITION)
_TOPICS = Array("topics", "topics", ("name",), kind=TOPIC)
_BY_NAME = Array("topics", "topics", ("name",), _PARTITIONS, TOPIC)
_BY_ID = Array("topics", "topics", ("name", "topic_id"), _PARTITIONS, TOPIC)
_GROUPS = Array("group_ids", "groups", ("group_id=",), kind=GROUP)
_CONFIGS = ("resource_name", "resource_type")
_STATE = Anatomy(
    Whole((CLUSTER_ACTION,)),
    Array("topics", "results", ("topic_id",), Array("partitions", "partitions", ("partition",))),
)
_NOTHING = Array(
    "partition_indexes",
    "partitions",
    ("partition_index=",),
    kind=PARTITION,
    failed={"committed_offset": NO_OFFSET},
)
TOPICS_OF_ONE_GROUP = Array("topics", "topics", ("name",), _NOTHING, TOPIC)
"""The entries of OffsetFetch before version 8."""
TOPICS_OF_GROUP = Array("topics", "topics", ("name", "topic_id"), _NOTHING, TOPIC)
"""The entries in each group of OffsetFetch: errors may stand on a group or on its partitions."""
TOPICS_OF_SHARE_GROUP = Array(
    "topics", "topics", ("topic_name",), Array("partitions", "partitions", ("partition_index=",)), TOPIC
)
"""The entries in each group of DescribeShareGroupOffsets."""

_TIMED_OUT = frozenset({ErrorCode.REQUEST_TIMED_OUT})
_APPENDED = _TIMED_OUT | {ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}

ANATOMY: Mapping[int, Anatomy] = {
    ApiKey.PRODUCE: Anatomy(
        By("producers.produce"),
        Array(
            "topic_data",
            "responses",
            ("name", "topic_id"),
            Array(
                "partition_data",
                "partition_responses",
                ("index",),
                kind=PARTITION,
                failed={"base_offset": NO_OFFSET},
            ),
            TOPIC,
        ),
        late=_APPENDED,
    ),
    ApiKey.FETCH: Anatomy(
        By("topics.fetch"),
        Array(
            "topics",
            "responses",
            ("topic", "topic_id"),
            Array(
                "partitions",
                "partitions",
                ("partition_index=partition",),
                kind=PARTITION,
                failed={
                    "high_watermark": NO_OFFSET,
                    "log_start_offset": NO_OFFSET,
                    "records": b"",
                    "aborted_transactions": None,
                },
            ),
            TOPIC,
        ),
    ),
    ApiKey.LIST_OFFSETS: Anatomy(Each(Operation.DESCRIBE), _BY_NAME),
    ApiKey.METADATA: Anatomy(
        By("topics.metadata"), Array("topics", "topics", ("name", "topic_id"), kind=TOPIC)
    ),
    ApiKey.OFFSET_COMMIT: Anatomy(Each(Operation.READ, (READ_GROUP,)), _BY_ID, late=_TIMED_OUT),
    ApiKey.OFFSET_FETCH: Anatomy(
        By("groups.offset_fetch"),
        Array("groups", "groups", ("group_id",), kind=GROUP),
        since=8,
        older=TOPICS_OF_ONE_GROUP,
    ),
    ApiKey.FIND_COORDINATOR: Anatomy(
        By("groups.find_coordinator"),
        _KEYS,
        since=4,
        refuse=_coordinator,
    ),
    ApiKey.JOIN_GROUP: Anatomy(Whole((READ_GROUP,)), refuse=_join),
    ApiKey.HEARTBEAT: Anatomy(Whole((READ_GROUP,))),
    ApiKey.LEAVE_GROUP: Anatomy(
        Whole((READ_GROUP,)),
        Array("members", "members", ("member_id", "group_instance_id"), kind=RESOURCE),
        since=3,
        on_top=True,
    ),
    ApiKey.SYNC_GROUP: Anatomy(By("groups.sync")),
    ApiKey.DESCRIBE_GROUPS: Anatomy(
        By("groups.describe"), Array("groups", "groups", ("group_id=",), kind=GROUP)
    ),
    ApiKey.LIST_GROUPS: Anatomy(
        Shown("groups", ResourceType.GROUP, "group_id", unless=DESCRIBE), top_level=True
    ),
    ApiKey.SASL_HANDSHAKE: Anatomy(FREE, top_level=True),
    ApiKey.API_VERSIONS: Anatomy(FREE, top_level=True),
    ApiKey.CREATE_TOPICS: Anatomy(By("topics.create"), _TOPICS, late=_TIMED_OUT),
    ApiKey.DELETE_TOPICS: Anatomy(
        By("topics.delete"),
        Array("topics", "responses", ("name", "topic_id"), kind=TOPIC),
        since=6,
        older=Array("topic_names", "responses", ("name=",), kind=TOPIC),
        late=_TIMED_OUT,
    ),
    ApiKey.DELETE_RECORDS: Anatomy(
        Each(Operation.DELETE),
        Array(
            "topics",
            "topics",
            ("name",),
            Array(
                "partitions",
                "partitions",
                ("partition_index",),
                kind=PARTITION,
                failed={"low_watermark": NO_OFFSET},
            ),
            TOPIC,
        ),
        late=_TIMED_OUT,
    ),
    ApiKey.INIT_PRODUCER_ID: Anatomy(By("producers.init_producer_id"), values={"producer_epoch": -1}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Anatomy(
        Each(Operation.DESCRIBE, unless=CLUSTER_ACTION),
        Array(
            "topics",
            "topics",
            ("topic",),
            Array("partitions", "partitions", ("partition",), kind=PARTITION),
            TOPIC,
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Anatomy(
        By("producers.add_partitions"),
        Array(
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            ("name",),
            Array(
                "partitions",
                "results_by_partition",
                ("partition_index=",),
                kind=PARTITION,
                error="partition_error_code",
            ),
            TOPIC,
        ),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Anatomy(Whole((WRITE_ID, READ_GROUP))),
    ApiKey.END_TXN: Anatomy(Whole((WRITE_ID,))),
    ApiKey.WRITE_TXN_MARKERS: Anatomy(
        By("producers.write_markers"),
        Array(
            "markers",
            "markers",
            ("producer_id",),
            Array(
                "topics",
                "topics",
                ("name",),
                Array("partition_indexes", "partitions", ("partition_index=",)),
            ),
        ),
        late=_APPENDED,
    ),
    ApiKey.TXN_OFFSET_COMMIT: Anatomy(Each(Operation.READ, (WRITE_ID, READ_GROUP)), _BY_ID, late=_TIMED_OUT),
    ApiKey.DESCRIBE_ACLS: Anatomy(Whole((DESCRIBE,))),
    ApiKey.CREATE_ACLS: Anatomy(Whole((ALTER,)), Array("creations", "results"), late=_TIMED_OUT),
    ApiKey.DELETE_ACLS: Anatomy(Whole((ALTER,)), Array("filters", "filter_results"), late=_TIMED_OUT),
    ApiKey.DESCRIBE_CONFIGS: Anatomy(
        By("configs.describe"), Array("resources", "results", _CONFIGS, kind=RESOURCE)
    ),
    ApiKey.ALTER_CONFIGS: Anatomy(
        By("configs.alter"), Array("resources", "responses", _CONFIGS, kind=RESOURCE), late=_TIMED_OUT
    ),
    ApiKey.SASL_AUTHENTICATE: Anatomy(FREE, top_level=True),
    ApiKey.CREATE_PARTITIONS: Anatomy(
        Each(Operation.ALTER), Array("topics", "results", ("name",), kind=TOPIC), late=_TIMED_OUT
    ),
    ApiKey.DELETE_GROUPS: Anatomy(
        By("groups.delete"),
        Array("groups_names", "results", ("group_id=",), kind=GROUP, explained=False),
        late=_TIMED_OUT,
    ),
    ApiKey.ELECT_LEADERS: Anatomy(
        Whole((ALTER,)),
        Array(
            "topic_partitions",
            "replica_election_results",
            ("topic",),
            Array("partitions", "partition_result", ("partition_id=",)),
        ),
        late=_TIMED_OUT,
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Anatomy(
        By("configs.alter"), Array("resources", "responses", _CONFIGS, kind=RESOURCE), late=_TIMED_OUT
    ),
    ApiKey.OFFSET_DELETE: Anatomy(
        Each(Operation.READ, (DELETE_GROUP,), even_none=True), _BY_NAME, on_top=True
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Anatomy(Whole((DESCRIBE_CONFIGS,)), values={"entries": None}),
    ApiKey.DESCRIBE_QUORUM: Anatomy(Whole((DESCRIBE,))),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Anatomy(
        Whole((DESCRIBE,)),
        # as many as users, and none of them named: DescribeUserScramCredentialsRequest.getErrorResponse
        Array("users", "results", failed={"user": ""}),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Anatomy(Whole((ALTER,)), refuse=_scram_changes, late=_TIMED_OUT),
    ApiKey.UPDATE_FEATURES: Anatomy(Whole((ALTER,)), late=_TIMED_OUT),
    ApiKey.DESCRIBE_CLUSTER: Anatomy(By("topics.describe_cluster"), top_level=True),
    ApiKey.DESCRIBE_PRODUCERS: Anatomy(
        By("producers.describe"),
        Array(
            "topics",
            "topics",
            ("name",),
            Array(
                "partition_indexes",
                "partitions",
                ("partition_index=",),
                kind=PARTITION,
                explained=False,
            ),
            TOPIC,
        ),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: Anatomy(
        By("producers.describe_transactions"),
        Array("transactional_ids", "transaction_states", ("transactional_id=",), kind=TXN_ID),
    ),
    ApiKey.LIST_TRANSACTIONS: Anatomy(
        Shown("transaction_states", ResourceType.TRANSACTIONAL_ID, "transactional_id"), top_level=True
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Anatomy(By("groups.heartbeat")),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Anatomy(By("groups.describe_consumers"), _GROUPS),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Anatomy(FREE, top_level=True),
    ApiKey.PUSH_TELEMETRY: Anatomy(FREE, top_level=True),
    ApiKey.LIST_CONFIG_RESOURCES: Anatomy(Whole((DESCRIBE_CONFIGS,))),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Anatomy(By("topics.describe_partitions"), _TOPICS),
    ApiKey.SHARE_GROUP_HEARTBEAT: Anatomy(By("shares.heartbeat")),
    ApiKey.SHARE_GROUP_DESCRIBE: Anatomy(By("shares.describe"), _GROUPS),
    ApiKey.SHARE_FETCH: Anatomy(By("shares.fetch")),
    ApiKey.SHARE_ACKNOWLEDGE: Anatomy(By("shares.acknowledge")),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _STATE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Anatomy(By("streams.heartbeat")),
    ApiKey.STREAMS_GROUP_DESCRIBE: Anatomy(By("streams.describe"), _GROUPS),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Anatomy(
        By("shares.describe_offsets"), Array("groups", "groups", ("group_id",), kind=GROUP)
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Anatomy(
        Each(Operation.READ, (READ_GROUP,), even_none=True),
        Array("topics", "responses", ("topic_name",), _PARTITIONS, TOPIC),
        on_top=True,
        fails_whole=True,
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Anatomy(
        Each(Operation.READ, (DELETE_GROUP,), even_none=True),
        Array("topics", "responses", ("topic_name",), kind=TOPIC),
        on_top=True,
        fails_whole=True,
    ),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Anatomy(Whole((READ_GROUP,))),
    ApiKey.CONSUMER_GROUP_PREPARE_ASSIGNMENT: Anatomy(Whole((READ_GROUP,))),
    ApiKey.CONSUMER_GROUP_INSTALL_ASSIGNMENT: Anatomy(Whole((READ_GROUP,))),
}
"""All that is not the same for every request: a row for each API that kgroup has messages for."""
