"""StreamsGroupTopologyDescriptionUpdate (key 93): describe a group's topology for people (KIP-1331).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND,
STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.topology_description import TopologyDescription
from kgroup.protocol.types import Int16, Int32, String


class StreamsGroupTopologyDescriptionUpdateRequest(Message, api=93, versions=range(1), flexible=0):
    group_id: String = ""
    member_id: String = ""
    topology_epoch: Int32 = 0
    topology_description: TopologyDescription = TopologyDescription()


class StreamsGroupTopologyDescriptionUpdateResponse(
    Message, answers=StreamsGroupTopologyDescriptionUpdateRequest
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
