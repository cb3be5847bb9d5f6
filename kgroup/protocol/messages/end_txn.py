"""EndTxn (key 26): commit or abort a transaction.

- 1: throttled after the answer is sent
- 2: may answer PRODUCER_FENCED
- 3: flexible
- 4: may answer TRANSACTION_ABORTABLE (KIP-890)
- 5: the epoch rises with every transaction; the answer brings id and epoch (KIP-890)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_PRODUCER_EPOCH,
INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED (2),
TRANSACTION_ABORTABLE (4), TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Bool, Int16, Int32, Int64, Since, String


class EndTxnRequest(Message, api=26, versions=range(6), flexible=3):
    """`committed` is false for an abort."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool = False


class EndTxnResponse(Message, answers=EndTxnRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, Since(5)] = -1
    producer_epoch: Annotated[Int16, Since(5)] = -1
