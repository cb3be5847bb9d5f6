"""When a server that has just started can be asked about groups and transactions."""

from __future__ import annotations

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest

from .server import Server
from .waiting import eventually

GROUP, TRANSACTION = 0, 1

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def coordinates(server: Server) -> None:
    """Wait until every group and transactional id has a coordinator; Kafka takes a while to load its own."""
    ids = tuple(f"warm-{number}" for number in range(20))
    transport = SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap)))

    def loaded() -> bool:
        codes = []
        for kind in (GROUP, TRANSACTION):
            found = transport.request(None, FindCoordinatorRequest(key_type=kind, coordinator_keys=ids))
            codes += [each.error_code for each in found.coordinators]  # type: ignore[attr-defined]
        groups = transport.request(None, DescribeGroupsRequest(groups=ids)).groups  # type: ignore[attr-defined]
        asked = DescribeTransactionsRequest(transactional_ids=ids)
        known = transport.request(None, asked).transaction_states  # type: ignore[attr-defined]
        return not NOT_YET.intersection([*codes, *(each.error_code for each in (*groups, *known))])

    eventually(loaded, what=f"{server.kind} has loaded its coordinators")
    transport.close()
