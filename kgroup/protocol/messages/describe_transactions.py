"""DescribeTransactions (key 65): state and partitions of transactions (KIP-664).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, Int64, String


@message
class DescribeTransactionsRequest(Message):
    API = 65
    VERSIONS = range(1)
    FLEXIBLE = 0

    transactional_ids: tuple[String, ...] = ()


@message
class TopicData(Struct):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


@message
class TransactionState(Struct):
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: tuple[TopicData, ...] = ()


@message
class DescribeTransactionsResponse(Message):
    API = 65
    VERSIONS = range(1)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...] = ()
