"""What an elected coordinator of the ZooKeeper era tells of its groups, asked on its own listener."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass

from kgroup.client.settings import address_text
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, KgroupError, Unreachable
from kgroup.zookeeper.wire.codec import Awaiting, Wire
from kgroup.zookeeper.wire.messages import (
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    Registered,
)
from kgroup.zookeeper.wire.primitives import Frames

CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """How a group stands with its coordinator, and all its members by id."""

    state: str
    members: tuple[Registered, ...]


def describe_groups(
    address: tuple[str, int], group_ids: Iterable[str], timeout_s: float
) -> dict[str, DescribedGroup | KgroupError]:
    """What the coordinator there tells of each group, all within `timeout_s`; never raises."""
    wanted = list(group_ids)
    until = time.monotonic() + timeout_s
    found: dict[str, DescribedGroup | KgroupError] = {}
    for header in (False, True):
        # Nothing tells which of the two forms a cluster speaks: it hangs up on the other.
        try:
            with _Asker(address, Wire(header=header), until) as asker:
                for name in wanted:
                    found[name] = asker.group(name)
                return found
        except _HungUp as error:
            failure: KgroupError = error
        except KgroupError as error:
            failure = error
            break
    return dict.fromkeys(wanted, failure) | found


class _HungUp(Unreachable):
    """The connection was closed in the place of an answer."""


class _Asker:
    """One connection; one question at a time."""

    def __init__(self, address: tuple[str, int], wire: Wire, until: float) -> None:
        self._address, self._wire, self._until = address, wire, until
        self._where = address_text(*address)
        self._frames = Frames()

    def __enter__(self) -> _Asker:
        try:
            self._socket = socket.create_connection(self._address, self._left())
        except TimeoutError:
            raise self._unreachable("no answer in time") from None
        except OSError as error:
            raise self._unreachable(str(error.strerror or error)) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def group(self, group_id: str) -> DescribedGroup | KgroupError:
        """All pages of one group; Unreachable when the connection is of no use any more."""
        members: list[Registered] = []
        while True:
            after = members[-1].consumer_id if members else ""
            answer = self._ask(DescribeGroupRequest(group_id, after))
            if answer.error == ErrorMapping.NOT_COORDINATOR:
                what = f"the broker at {self._where} is not the coordinator any more"
                return BrokerRefused(ErrorCode.NOT_COORDINATOR, what, hint="ask again in a moment")
            if answer.error != ErrorMapping.NONE:
                what = f"the coordinator at {self._where} answered error {answer.error}"
                return BrokerRefused(ErrorCode.UNKNOWN_SERVER_ERROR, what)
            if any(member.consumer_id <= after for member in answer.members) or (
                answer.more and not answer.members
            ):
                raise self._unreachable("its pages of members do not go on")
            members += answer.members
            if not answer.more:
                return DescribedGroup(answer.state, tuple(members))

    def _ask(self, request: DescribeGroupRequest) -> DescribeGroupResponse:
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(self._wire.encode(request))
            while True:
                self._socket.settimeout(self._left())
                data = self._socket.recv(CHUNK)
                if not data:
                    raise _HungUp(self._unreachable("it closed the connection").message)
                for payload in self._frames.feed(data):
                    answer, _ = self._wire.from_coordinator(payload, Awaiting.NOTHING)
                    if isinstance(answer, DescribeGroupResponse):
                        return answer
        except DecodeError as error:
            raise self._unreachable(error.message) from None
        except ConnectionError as error:
            raise _HungUp(self._unreachable(str(error.strerror or error)).message) from None
        except TimeoutError:
            raise self._unreachable("no answer in time") from None
        except OSError as error:
            raise self._unreachable(str(error.strerror or error)) from None

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise self._unreachable("no answer in time")
        return left

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"the elected coordinator at {self._where} cannot be asked: {why}")
