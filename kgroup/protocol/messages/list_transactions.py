"""ListTransactions (key 66): the transactions one broker coordinates (KIP-664).

- 1: filter by age (KIP-994)
- 2: filter by a regular expression over the transactional id (KIP-1152)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, INVALID_REGULAR_EXPRESSION (2).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String


class ListTransactionsRequest(Message, api=66, versions=range(3), flexible=0):
    state_filters: tuple[String, ...] = ()
    producer_id_filters: tuple[Int64, ...] = ()
    duration_filter: Annotated[Int64, Since(1)] = -1
    transactional_id_pattern: Annotated[String | None, Since(2)] = None


class TransactionState(Struct):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsResponse(Message, answers=ListTransactionsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: tuple[String, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()
