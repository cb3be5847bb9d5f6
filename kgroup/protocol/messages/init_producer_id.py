"""InitProducerId (key 22): a producer id and epoch, which fences earlier producers of the transactional id.

- 1: throttled after the answer is sent
- 2: flexible
- 3: a producer may name its id and epoch, to go on after an error (KIP-360)
- 4: may answer PRODUCER_FENCED
- 5: may answer TRANSACTION_ABORTABLE (KIP-890)

Version 6 (two-phase commit, KIP-939) is not stable and not served.

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
INVALID_PRODUCER_EPOCH, INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED (4),
TRANSACTION_ABORTABLE (5), TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.types import Bool, Int16, Int32, Int64, Since, String


class InitProducerIdRequest(Message, api=22, versions=range(6), flexible=2):
    transactional_id: String | None = None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, Since(3)] = -1
    producer_epoch: Annotated[Int16, Since(3)] = -1
    enable2_pc: Annotated[Bool, Since(6)] = False
    keep_prepared_txn: Annotated[Bool, Since(6)] = False


class InitProducerIdResponse(Message, answers=InitProducerIdRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, Since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, Since(6)] = -1
