"""PushTelemetry (key 72): a client's metrics, in the OTLP format (KIP-714).

- 0: first version

Errors: INVALID_REQUEST, INVALID_RECORD, UNKNOWN_SUBSCRIPTION_ID, TELEMETRY_TOO_LARGE,
UNSUPPORTED_COMPRESSION_TYPE, THROTTLING_QUOTA_EXCEEDED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Bool, Bytes, Int8, Int16, Int32, Uuid


class PushTelemetryRequest(Message, api=72, versions=range(1), flexible=0):
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool = False
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Message, answers=PushTelemetryRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
