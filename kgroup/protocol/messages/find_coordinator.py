"""FindCoordinator (key 10): the broker that coordinates a group, a transactional id or a share partition.

- 1: key type (0 group, 1 transaction, 2 share); error message and throttle time
- 2: throttled after the answer is sent
- 3: flexible
- 4: many keys at once; each answer carries its own error (KIP-699)
- 5: may answer TRANSACTION_ABORTABLE (KIP-890)
- 6: share partitions, as `group:topic_id:partition` (KIP-932)

Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TRANSACTION_ABORTABLE.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, Since, String, Until


class FindCoordinatorRequest(Message, api=10, versions=range(7), flexible=3):
    key: Annotated[String, Until(3)] = ""
    key_type: Annotated[Int8, Since(1)] = 0
    coordinator_keys: Annotated[tuple[String, ...], Since(4)] = ()


class Coordinator(Struct):
    """The coordinator of one key; node -1 with an error."""

    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class FindCoordinatorResponse(Message, answers=FindCoordinatorRequest):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Annotated[Int16, Until(3)] = 0
    error_message: Annotated[String | None, Since(1), Until(3)] = None
    node_id: Annotated[Int32, Until(3)] = 0
    host: Annotated[String, Until(3)] = ""
    port: Annotated[Int32, Until(3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], Since(4)] = ()
