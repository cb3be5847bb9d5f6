"""ListGroups (key 16): the groups one broker coordinates.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: flexible
- 4: filter by state, and states in the answer (KIP-518)
- 5: filter by type, and types in the answer (KIP-848)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Since, String


class ListGroupsRequest(Message, api=16, versions=range(6), flexible=3):
    states_filter: Annotated[tuple[String, ...], Since(4)] = ()
    types_filter: Annotated[tuple[String, ...], Since(5)] = ()


class ListedGroup(Struct):
    """A group; the protocol type is empty for a group that only stores offsets."""

    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, Since(4)] = ""
    group_type: Annotated[String, Since(5)] = ""


class ListGroupsResponse(Message, answers=ListGroupsRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...] = ()
