"""DescribeClientQuotas: there are none here, and Kafka's own tools ask before they show a user.

The request is checked as Kafka's ClientQuotasImage does.
"""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITIES = frozenset({"user", "client-id", "ip"})
EXACT, DEFAULT, SPECIFIED = range(3)
MATCHES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


def describe(broker: Dispatcher, call: Call[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    """Return no entries: no client is throttled here. INVALID_REQUEST for an invalid filter."""
    seen: set[str] = set()
    for component in call.body.components:
        kind = component.entity_type
        if not kind:
            raise Refused(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            text = f"Entity type {kind} cannot appear more than once in the filter."
            raise Refused(ErrorCode.INVALID_REQUEST, text)
        if kind not in ENTITIES:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        match_type, match = component.match_type, component.match
        if match_type not in MATCHES:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")
        if match_type == EXACT and match is None:
            text = f"Request specified {MATCHES[EXACT]}, but set match string to null."
            raise Refused(ErrorCode.INVALID_REQUEST, text)
        if match_type != EXACT and match is not None:
            text = f"Request specified {MATCHES[match_type]}, but also specified a match string."
            raise Refused(ErrorCode.INVALID_REQUEST, text)
        seen.add(kind)
    if "ip" in seen and len(seen) > 1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component.",
        )
    return DescribeClientQuotasResponse()


APIS = (Api(DescribeClientQuotasRequest, describe),)
