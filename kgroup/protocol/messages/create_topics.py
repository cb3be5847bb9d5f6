"""CreateTopics (key 19): create topics, or only check whether they could be created.

- 2: first version served
- 3: throttled after the answer is sent
- 4: partition count and replication factor may be -1, the broker's default (KIP-464)
- 5: flexible; the answer has the configuration (KIP-525)
- 6: may answer THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 7: topic id in the answer

Errors: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, NOT_CONTROLLER, POLICY_VIOLATION,
REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, THROTTLING_QUOTA_EXCEEDED (6).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Since, String, Tagged, Uuid


class CreatableReplicaAssignment(Struct):
    """The brokers that should hold one partition, the preferred leader first."""

    partition_index: Int32
    broker_ids: tuple[Int32, ...] = ()


class CreatableTopicConfig(Struct):
    name: String
    value: String | None = None


class CreatableTopic(Struct):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Message, api=19, versions=range(2, 8), flexible=5):
    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopicConfigs(Struct):
    name: String = ""
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


class CreatableTopicResult(Struct):
    name: String = ""
    topic_id: Annotated[Uuid, Since(7)] = bytes(16)
    error_code: Int16 = 0
    error_message: String | None = None
    topic_config_error_code: Annotated[Int16, Since(5), Tagged(0)] = 0
    num_partitions: Annotated[Int32, Since(5)] = -1
    replication_factor: Annotated[Int16, Since(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, Since(5)] = ()


class CreateTopicsResponse(Message, answers=CreateTopicsRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...] = ()
