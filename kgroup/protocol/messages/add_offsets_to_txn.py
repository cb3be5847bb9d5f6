"""AddOffsetsToTxn (key 25): make a group's offsets part of a transaction.

TxnOffsetCommit needs it first up to its version 4.

- 1: throttled after the answer is sent
- 2: may answer PRODUCER_FENCED
- 3: flexible
- 4: may answer TRANSACTION_ABORTABLE (KIP-890)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_PRODUCER_EPOCH,
INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED (2),
TRANSACTION_ABORTABLE (4), TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Int16, Int32, Int64, String


class AddOffsetsToTxnRequest(Message, api=25, versions=range(5), flexible=3):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Message, answers=AddOffsetsToTxnRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
