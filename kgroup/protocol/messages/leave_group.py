"""LeaveGroup (key 13): take members out of a group, oneself or, as an administrator, others.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: many members at once, each named by member id or group instance id (KIP-345)
- 4: flexible
- 5: reason (KIP-800)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, and for each member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Since, String, Until


class MemberIdentity(Struct):
    """The member that leaves; an empty member id with an instance id means that id's owner."""

    member_id: String
    group_instance_id: String | None = None
    reason: Annotated[String | None, Since(5)] = None


class LeaveGroupRequest(Message, api=13, versions=range(6), flexible=4):
    group_id: String
    member_id: Annotated[String, Until(2)] = ""
    members: Annotated[tuple[MemberIdentity, ...], Since(3)] = ()


class MemberResponse(Struct):
    """The result of one member's leave."""

    member_id: String = ""
    group_instance_id: String | None = None
    error_code: Int16 = 0


class LeaveGroupResponse(Message, answers=LeaveGroupRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[tuple[MemberResponse, ...], Since(3)] = ()
