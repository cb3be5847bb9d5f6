"""ListConfigResources (key 74): the resources that have settings (KIP-1142).

Resource types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.

- 0: client metrics only, under the name of ListClientMetricsResources
- 1: of the types asked for; an empty list is all of them

Errors: UNSUPPORTED_VERSION (a type that the version does not list), CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, Since, String


class ListConfigResourcesRequest(Message, api=74, versions=range(2), flexible=0):
    resource_types: Annotated[tuple[Int8, ...], Since(1)] = ()


class ConfigResource(Struct):
    resource_name: String = ""
    resource_type: Annotated[Int8, Since(1)] = 16


class ListConfigResourcesResponse(Message, answers=ListConfigResourcesRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: tuple[ConfigResource, ...] = ()
