"""SyncGroup (key 14): the leader brings the assignments, every member fetches its own.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: group instance id (KIP-345)
- 4: flexible
- 5: protocol type and name, checked by the broker (KIP-559)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, INCONSISTENT_GROUP_PROTOCOL, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bytes, Int16, Int32, Since, String


class SyncGroupRequestAssignment(Struct):
    """What the leader gives one member."""

    member_id: String
    assignment: Bytes


class SyncGroupRequest(Message, api=14, versions=range(6), flexible=4):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, Since(3)] = None
    protocol_type: Annotated[String | None, Since(5)] = None
    protocol_name: Annotated[String | None, Since(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


class SyncGroupResponse(Message, answers=SyncGroupRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, Since(5)] = None
    protocol_name: Annotated[String | None, Since(5)] = None
    assignment: Bytes = b""
