"""CreatePartitions (key 37): give topics more partitions.

- 1: throttled after the answer is sent
- 2: flexible
- 3: may answer THROTTLING_QUOTA_EXCEEDED (KIP-599)

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST,
NOT_CONTROLLER, REASSIGNMENT_IN_PROGRESS, POLICY_VIOLATION, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED,
THROTTLING_QUOTA_EXCEEDED (3).
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, String


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[Int32, ...] = ()


class CreatePartitionsTopic(Struct):
    """A topic, the number of partitions it should have, and perhaps where the new ones go."""

    name: String
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None = ()


class CreatePartitionsRequest(Message, api=37, versions=range(4), flexible=2):
    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: Int32
    validate_only: Bool = False


class CreatePartitionsTopicResult(Struct):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(Message, answers=CreatePartitionsRequest):
    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
