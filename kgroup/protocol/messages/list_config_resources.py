"""ListConfigResources (key 74): the resources that have settings (KIP-1142).

Resource types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.

- 0: client metrics only, under the name of ListClientMetricsResources
- 1: of the types asked for; an empty list is all of them

Errors: UNSUPPORTED_VERSION (a type that the version does not list), CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int8, Int16, Int32, Since, String


@message
class ListConfigResourcesRequest(Message):
    API = 74
    VERSIONS = range(2)
    FLEXIBLE = 0

    resource_types: Annotated[tuple[Int8, ...], Since(1)] = ()


@message
class ConfigResource(Struct):
    resource_name: String = ""
    resource_type: Annotated[Int8, Since(1)] = 16


@message
class ListConfigResourcesResponse(Message):
    API = 74
    VERSIONS = range(2)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: tuple[ConfigResource, ...] = ()
