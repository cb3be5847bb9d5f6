"""AlterConfigs (key 33): replace all settings of a resource; superseded by IncrementalAlterConfigs (KIP-339).

- 1: throttled after the answer is sent
- 2: flexible

Errors: as IncrementalAlterConfigs.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Bool, Int8, Int32, String


@message
class AlterableConfig(Struct):
    name: String
    value: String | None = None


@message
class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...] = ()


@message
class AlterConfigsRequest(Message):
    API = 33
    VERSIONS = range(3)
    FLEXIBLE = 2

    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: Bool = False


@message
class AlterConfigsResponse(Message):
    API = 33
    VERSIONS = range(3)
    FLEXIBLE = 2

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
