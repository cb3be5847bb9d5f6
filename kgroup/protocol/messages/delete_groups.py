"""DeleteGroups (key 42): remove empty groups with their offsets, whatever their type.

- 1: throttled after the answer is sent
- 2: flexible
- 3: why a group was not deleted (KIP-1331)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, GROUP_DELETION_FAILED (3).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Since, String


class DeleteGroupsRequest(Message, api=42, versions=range(4), flexible=2):
    groups_names: tuple[String, ...] = ()


class DeletableGroupResult(Struct):
    """What became of one group."""

    group_id: String = ""
    error_code: Int16 = 0
    error_message: Annotated[String | None, Since(3)] = None


class DeleteGroupsResponse(Message, answers=DeleteGroupsRequest):
    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...] = ()
