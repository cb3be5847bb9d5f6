"""AlterConfigs (key 33): replace all settings of a resource; superseded by IncrementalAlterConfigs (KIP-339).

- 1: throttled after the answer is sent
- 2: flexible

Errors: as IncrementalAlterConfigs.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse
from kgroup.protocol.types import Bool, Int8, Int32, String


class AlterableConfig(Struct):
    name: String
    value: String | None = None


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...] = ()


class AlterConfigsRequest(Message, api=33, versions=range(3), flexible=2):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: Bool = False


class AlterConfigsResponse(Message, answers=AlterConfigsRequest):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
