"""Heartbeat (key 12): keep a classic member's session alive and report rebalances.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: group instance id (KIP-345)
- 4: flexible

Errors: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED,
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Int16, Int32, Since, String


class HeartbeatRequest(Message, api=12, versions=range(5), flexible=4):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, Since(3)] = None


class HeartbeatResponse(Message, answers=HeartbeatRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
