"""IncrementalAlterConfigs (key 44): change single settings and leave the others (KIP-339).

Operations: 0 set, 1 delete, 2 append to a list, 3 take out of a list.

- 1: flexible

Errors: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, NOT_CONTROLLER,
POLICY_VIOLATION, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED,
GROUP_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, String


class AlterableConfig(Struct):
    name: String
    config_operation: Int8
    value: String | None = None


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...] = ()


class IncrementalAlterConfigsRequest(Message, api=44, versions=range(2), flexible=1):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: Bool = False


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


class IncrementalAlterConfigsResponse(Message, answers=IncrementalAlterConfigsRequest):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
