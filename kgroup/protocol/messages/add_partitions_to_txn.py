"""AddPartitionsToTxn (key 24): make partitions part of a transaction.

Clients use versions 0 to 3; brokers verify transactions with the later ones.

- 1: throttled after the answer is sent
- 2: may answer PRODUCER_FENCED
- 3: flexible
- 4: many transactions at once; may only verify
- 5: may answer TRANSACTION_ABORTABLE (KIP-890)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_PRODUCER_EPOCH,
INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED (2),
TRANSACTION_ABORTABLE (5), OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, Int64, Since, String, Until


class AddPartitionsToTxnTopic(Struct):
    name: String
    partitions: tuple[Int32, ...] = ()


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


class AddPartitionsToTxnRequest(Message, api=24, versions=range(6), flexible=3):
    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], Since(4)] = ()
    v3_and_below_transactional_id: Annotated[String, Until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, Until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, Until(3)] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], Until(3)] = ()


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Struct):
    name: String = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()


class AddPartitionsToTxnResult(Struct):
    transactional_id: String = ""
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()


class AddPartitionsToTxnResponse(Message, answers=AddPartitionsToTxnRequest):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(4)] = 0
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], Since(4)] = ()
    results_by_topic_v3_and_below: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], Until(3)] = ()
