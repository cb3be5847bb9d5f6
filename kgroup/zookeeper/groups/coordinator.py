"""The coordinator elected in a tree, and what only it knows: the members registered in its groups."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgroup.admin.models import GroupDescription, ItemError, Node
from kgroup.admin.refusals import code_name
from kgroup.client.settings import address_text
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, KgroupError, Unreachable
from kgroup.zookeeper.coordinator.registries import parse
from kgroup.zookeeper.groups import nodes as tree
from kgroup.zookeeper.groups.nodes import IDS, Ask, DescribedGroup, Elected, GroupNodes
from kgroup.zookeeper.groups.records import Broker, Registration, registration_of_pattern
from kgroup.zookeeper.wire.codec import Awaiting, Frames, Wire
from kgroup.zookeeper.wire.messages import (
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    Registered,
)

OWN_LISTENER = "LEGACY"
"""The name of a broker's listener for consumers of the elected coordinator (`kgroup serve --legacy`)."""
NO_MEMBERS = DescribedGroup("Empty", ())
AskRegistered = Callable[[tuple[str, int], Sequence[str]], Mapping[str, DescribedGroup | KgroupError]]
"""Asks a coordinator's own listener for groups."""


def ask(ask_tree: Ask, registered: AskRegistered, known: Sequence[GroupNodes]) -> None:
    """Record in each group what an elected coordinator reports about it.

    Before its first rebalance succeeds only the coordinator knows a consumer, so it is asked about every
    group without registrations in the tree. If it cannot answer, the group's members are unknown.
    """
    elected = tree.elected(ask_tree) if known else None
    if elected is None:
        return
    assigned = tree.coordinated(ask_tree, [group.group_id for group in known])
    groups = {g.group_id: g for g in known if g.group_id in assigned or not g.registered}
    own = _listeners(tree.brokers(ask_tree)[0], elected).get(OWN_LISTENER)
    answers: Mapping[str, DescribedGroup | KgroupError]
    if own is not None:
        answers = registered(own, sorted(groups)) if groups else {}
    else:
        # Other implementations of the design of 0.9 have no such listener and do not know the request.
        why = f"the elected coordinator, broker {elected.broker_id}, has no listener {OWN_LISTENER}"
        answers = dict.fromkeys(groups.keys() - assigned, Unreachable(f"{why} to be asked on"))
    for name, group in groups.items():
        answer = answers.get(name)
        if name in assigned or (isinstance(answer, DescribedGroup) and answer != NO_MEMBERS):
            group.elected = elected
        if isinstance(answer, KgroupError):
            group.unread.add(IDS)
            message = f"{name}: its members are unknown: {answer.message}"
            group.errors.append(ItemError(name, code_name(answer), message, answer.hint))
        elif answer is not None and group.elected is not None:
            _take(group, answer)


def _take(group: GroupNodes, described: DescribedGroup) -> None:
    group.described = described
    for member in described.members:
        subscription = parse(member.topic_count)
        if subscription is None:
            what = f"not a subscription: {member.topic_count!r}"
            group.registered[member.consumer_id] = DecodeError(what)
        elif subscription.pattern is None:
            group.registered[member.consumer_id] = Registration(tuple(sorted(subscription.topics)))
        else:
            text = member.topic_count[1:].partition(member.topic_count[0])[2]
            group.registered[member.consumer_id] = registration_of_pattern(text, subscription.wanted)


def with_coordinator(
    ask_tree: Ask, described: tuple[GroupDescription, ...], nodes: Mapping[str, GroupNodes]
) -> tuple[tuple[GroupDescription, ...], tuple[ItemError, ...]]:
    """Return the groups with the coordinator that assigned them, and errors for what is unknown about it."""
    elected = next((broker for group in nodes.values() if (broker := group.elected) is not None), None)
    if elected is None:
        return described, ()
    listeners = _listeners(tree.brokers(ask_tree)[0], elected)
    address = listeners.get(OWN_LISTENER) or next(iter(listeners.values()), None)
    node = None if address is None else Node(elected.broker_id, *address)
    with_it = tuple(
        replace(group, coordinator=node, coordinator_epoch=elected.epoch)
        if nodes[group.group_id].elected is not None
        else group
        for group in described
    )
    if node is not None:
        return with_it, ()
    what = f"broker {elected.broker_id}"
    why = f"{what} is the elected coordinator, but is not registered: its listener is unknown"
    return with_it, (ItemError(what, ErrorCode.COORDINATOR_NOT_AVAILABLE.name, why),)


def _listeners(brokers: Iterable[Broker], elected: Elected) -> Mapping[str, tuple[str, int]]:
    return next((broker.listeners for broker in brokers if broker.id == elected.broker_id), {})


CHUNK = 64 * 1024


def describe_groups(
    address: tuple[str, int], group_ids: Iterable[str], timeout_s: float
) -> dict[str, DescribedGroup | KgroupError]:
    """Return the coordinator's description of each group, all within `timeout_s`; never raises."""
    names = list(group_ids)
    until = time.monotonic() + timeout_s
    described: dict[str, DescribedGroup | KgroupError] = {}
    for header in (False, True):
        # A cluster does not announce its form of the protocol: it hangs up on the other one.
        try:
            with _Asker(address, Wire(header=header), until) as asker:
                for name in names:
                    described[name] = asker.group(name)
                return described
        except _HungUp as error:
            failure: KgroupError = error
        except KgroupError as error:
            failure = error
            break
    return dict.fromkeys(names, failure) | described


class _HungUp(Unreachable):
    """The connection was closed instead of an answer."""


class _Asker:
    """One connection; one request at a time."""

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
        """Return all pages of one group; Unreachable when the connection is no longer usable."""
        members: list[Registered] = []
        while True:
            after = members[-1].consumer_id if members else ""
            answer = self._ask(DescribeGroupRequest(group_id, after))
            if answer.error == ErrorMapping.NOT_COORDINATOR:
                what = f"the broker at {self._where} is no longer the coordinator"
                return BrokerRefused(ErrorCode.NOT_COORDINATOR, what, hint="ask again in a moment")
            if answer.error != ErrorMapping.NONE:
                what = f"the coordinator at {self._where} answered error {answer.error}"
                return BrokerRefused(ErrorCode.UNKNOWN_SERVER_ERROR, what)
            if any(member.consumer_id <= after for member in answer.members) or (
                answer.more and not answer.members
            ):
                raise self._unreachable("its list of members did not advance")
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
