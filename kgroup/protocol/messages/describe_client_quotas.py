"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses (KIP-546).

Match types: 0 the name given, 1 the default, 2 any name.

- 1: flexible

Errors: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNSUPPORTED_VERSION.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Float64, Int8, Int16, Int32, String


class ComponentData(Struct):
    entity_type: String
    match_type: Int8
    match: String | None = None


class DescribeClientQuotasRequest(Message, api=48, versions=range(2), flexible=1):
    components: tuple[ComponentData, ...] = ()
    strict: Bool = False


class EntityData(Struct):
    entity_type: String
    entity_name: String | None = None


class ValueData(Struct):
    key: String
    value: Float64


class EntryData(Struct):
    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()


class DescribeClientQuotasResponse(Message, answers=DescribeClientQuotasRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    entries: tuple[EntryData, ...] | None = ()
