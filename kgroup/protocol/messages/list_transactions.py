"""ListTransactions (key 66): the transactions one broker coordinates (KIP-664).

- 1: filter by age (KIP-994)
- 2: filter by a regular expression over the transactional id (KIP-1152)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, INVALID_REGULAR_EXPRESSION (2).
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, Int64, Since, String


@message
class ListTransactionsRequest(Message):
    API = 66
    VERSIONS = range(3)
    FLEXIBLE = 0

    state_filters: tuple[String, ...] = ()
    producer_id_filters: tuple[Int64, ...] = ()
    duration_filter: Annotated[Int64, Since(1)] = -1
    transactional_id_pattern: Annotated[String | None, Since(2)] = None


@message
class TransactionState(Struct):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@message
class ListTransactionsResponse(Message):
    API = 66
    VERSIONS = range(3)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: tuple[String, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()
