"""DeleteTopics (key 20): delete topics with their records.

- 1: first version served
- 2: throttled after the answer is sent
- 3: may answer TOPIC_DELETION_DISABLED
- 4: flexible
- 5: error message; may answer THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 6: topics by id too

Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (6), INVALID_TOPIC_EXCEPTION, NOT_CONTROLLER,
INVALID_REQUEST, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED, TOPIC_DELETION_DISABLED (3),
THROTTLING_QUOTA_EXCEEDED (5).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, NullableSince, Since, String, Until, Uuid


class DeleteTopicState(Struct):
    """A topic by name, or by id with a null name."""

    name: String | None = None
    topic_id: Uuid


class DeleteTopicsRequest(Message, api=20, versions=range(1, 7), flexible=4):
    topics: Annotated[tuple[DeleteTopicState, ...], Since(6)] = ()
    topic_names: Annotated[tuple[String, ...], Until(5)] = ()
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    name: Annotated[String | None, NullableSince(6)] = None
    topic_id: Annotated[Uuid, Since(6)] = bytes(16)
    error_code: Int16 = 0
    error_message: Annotated[String | None, Since(5)] = None


class DeleteTopicsResponse(Message, answers=DeleteTopicsRequest):
    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...] = ()
