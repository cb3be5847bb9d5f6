"""DescribeGroups (key 15): state and members of classic groups.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: authorized operations
- 4: group instance ids (KIP-345)
- 5: flexible
- 6: an unknown group is GROUP_ID_NOT_FOUND with a message, before it was a group in state Dead (KIP-1043)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Bytes, Int16, Int32, Since, String


class DescribeGroupsRequest(Message, api=15, versions=range(7), flexible=5):
    groups: tuple[String, ...] = ()
    include_authorized_operations: Annotated[Bool, Since(3)] = False


class DescribedGroupMember(Struct):
    """A member; metadata and assignment are filled only in a Stable group."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, Since(4)] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Struct):
    """One group; `protocol_data` is the chosen protocol's name."""

    error_code: Int16 = 0
    error_message: Annotated[String | None, Since(6)] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: Annotated[Int32, Since(3)] = -(1 << 31)


class DescribeGroupsResponse(Message, answers=DescribeGroupsRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: tuple[DescribedGroup, ...] = ()
