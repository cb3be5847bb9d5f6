"""GetTelemetrySubscriptions (key 71): which metrics a broker wants a client to push (KIP-714).

- 0: first version; a zero client instance id asks for one

Errors: INVALID_REQUEST, UNSUPPORTED_VERSION, THROTTLING_QUOTA_EXCEEDED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Bool, Int8, Int16, Int32, String, Uuid


class GetTelemetrySubscriptionsRequest(Message, api=71, versions=range(1), flexible=0):
    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Message, answers=GetTelemetrySubscriptionsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = bytes(16)
    subscription_id: Int32 = 0
    accepted_compression_types: tuple[Int8, ...] = ()
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    requested_metrics: tuple[String, ...] = ()
