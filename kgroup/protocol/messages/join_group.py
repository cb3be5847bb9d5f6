"""JoinGroup (key 11): enter a classic group or rejoin it; answered when its rebalance completes.

- 1: rebalance timeout, which before was the session timeout
- 2: throttle time
- 3: throttled after the answer is sent
- 4: a first join without member id is answered MEMBER_ID_REQUIRED and an id to come back with (KIP-394)
- 5: group instance id (KIP-345)
- 6: flexible
- 7: the answer names the protocol type, and both names may be null (KIP-559)
- 8: reason (KIP-800)
- 9: the leader may be asked to skip the assignment (KIP-814)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, INVALID_SESSION_TIMEOUT,
GROUP_MAX_SIZE_REACHED, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Bytes, Int16, Int32, NullableSince, Since, String


class JoinGroupRequestProtocol(Struct):
    """A protocol (assignor) the member supports, most wanted first, with its subscription."""

    name: String
    metadata: Bytes


class JoinGroupRequest(Message, api=11, versions=range(10), flexible=6):
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: String
    group_instance_id: Annotated[String | None, Since(5)] = None
    protocol_type: String
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: Annotated[String | None, Since(8)] = None


class JoinGroupResponseMember(Struct):
    """A member as the leader sees it: its subscription under the chosen protocol."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, Since(5)] = None
    metadata: Bytes = b""


class JoinGroupResponse(Message, answers=JoinGroupRequest):
    """`members` is filled for the leader only."""

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, Since(7)] = None
    protocol_name: Annotated[String | None, NullableSince(7)] = None
    leader: String = ""
    skip_assignment: Annotated[Bool, Since(9)] = False
    member_id: String = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
