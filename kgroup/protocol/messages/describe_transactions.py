"""DescribeTransactions (key 65): state and partitions of transactions (KIP-664).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String


class DescribeTransactionsRequest(Message, api=65, versions=range(1), flexible=0):
    transactional_ids: tuple[String, ...] = ()


class TopicData(Struct):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


class TransactionState(Struct):
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: tuple[TopicData, ...] = ()


class DescribeTransactionsResponse(Message, answers=DescribeTransactionsRequest):
    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...] = ()
