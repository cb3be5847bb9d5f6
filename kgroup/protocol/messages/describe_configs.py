"""DescribeConfigs (key 32): settings of topics, brokers, groups, and where their values come from.

Resource types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.

- 1: first version served; source and synonyms of each value
- 2: throttled after the answer is sent
- 3: type and documentation of each setting (KIP-569)
- 4: flexible

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED,
CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Since, String


class DescribeConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None = ()


class DescribeConfigsRequest(Message, api=32, versions=range(1, 5), flexible=4):
    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, Since(3)] = False


class DescribeConfigsSynonym(Struct):
    """Another place the setting may come from, in order of precedence."""

    name: String = ""
    value: String | None = None
    source: Int8 = 0


class DescribeConfigsResourceResult(Struct):
    name: String = ""
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: Annotated[Int8, Since(3)] = 0
    documentation: Annotated[String | None, Since(3)] = None


class DescribeConfigsResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Message, answers=DescribeConfigsRequest):
    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...] = ()
