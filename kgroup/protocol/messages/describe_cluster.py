"""DescribeCluster (key 60): the cluster's id, controller and nodes (KIP-700).

- 1: brokers or controllers may be asked for (KIP-919)
- 2: fenced brokers too (KIP-1073)

Errors: UNSUPPORTED_ENDPOINT_TYPE (1), MISMATCHED_ENDPOINT_TYPE (1), CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Since, String


class DescribeClusterRequest(Message, api=60, versions=range(3), flexible=0):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, Since(1)] = 1
    include_fenced_brokers: Annotated[Bool, Since(2)] = False


class DescribeClusterBroker(Struct):
    """A node and the address of the listener that was asked."""

    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Bool, Since(2)] = False


class DescribeClusterResponse(Message, answers=DescribeClusterRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, Since(1)] = 1
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: Int32 = -(1 << 31)
