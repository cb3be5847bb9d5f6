"""The coordinator that is elected in a tree, and what it alone knows: who is registered in its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgroup.admin.models import GroupDescription, ItemError, Node
from kgroup.admin.refusals import code_name
from kgroup.errors import DecodeError, ErrorCode, KgroupError, Unreachable
from kgroup.zookeeper.coordinator.subscription import parse
from kgroup.zookeeper.groups import nodes as tree
from kgroup.zookeeper.groups.coordinator_client import DescribedGroup
from kgroup.zookeeper.groups.nodes import IDS, Ask, Elected, GroupNodes
from kgroup.zookeeper.groups.records import Broker, Registration, registration_of_pattern

OWN_LISTENER = "LEGACY"
"""The name of a broker's listener for consumers of the elected coordinator (`kgroup serve --legacy`)."""
NOBODY = DescribedGroup("Empty", ())
Registered = Callable[[tuple[str, int], Sequence[str]], Mapping[str, DescribedGroup | KgroupError]]
"""Asks a coordinator's own listener for groups."""


def ask(ask_tree: Ask, registered: Registered, known: Sequence[GroupNodes]) -> None:
    """Take down in each group what an elected coordinator tells of it.

    Before its first rebalance succeeds a consumer is known to the coordinator only, so every group without
    registrations in the tree is asked for. If the coordinator cannot tell, who is registered is unknown.
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
        # Other implementations of the design of 0.9 have no such listener and do not know the question.
        why = f"the elected coordinator, broker {elected.broker_id}, has no listener {OWN_LISTENER}"
        answers = dict.fromkeys(groups.keys() - assigned, Unreachable(f"{why} to be asked on"))
    for name, group in groups.items():
        told = answers.get(name)
        if name in assigned or (isinstance(told, DescribedGroup) and told != NOBODY):
            group.elected = elected
        if isinstance(told, KgroupError):
            group.unread.add(IDS)
            message = f"{name}: who is registered is not known: {told.message}"
            group.errors.append(ItemError(name, code_name(told), message, told.hint))
        elif told is not None and group.elected is not None:
            _take(group, told)


def _take(group: GroupNodes, told: DescribedGroup) -> None:
    group.told = told
    for member in told.members:
        subscription = parse(member.topic_count)
        if subscription is None:
            what = f"it is no subscription: {member.topic_count!r}"
            group.registered[member.consumer_id] = DecodeError(what)
        elif subscription.pattern is None:
            group.registered[member.consumer_id] = Registration(tuple(sorted(subscription.topics)))
        else:
            text = member.topic_count[1:].partition(member.topic_count[0])[2]
            group.registered[member.consumer_id] = registration_of_pattern(text, subscription.wanted)


def with_coordinator(
    ask_tree: Ask, told: tuple[GroupDescription, ...], nodes: Mapping[str, GroupNodes]
) -> tuple[tuple[GroupDescription, ...], tuple[ItemError, ...]]:
    """The groups with the elected coordinator of those that one has assigned; what is not known of it."""
    elected = next((found for each in nodes.values() if (found := each.elected) is not None), None)
    if elected is None:
        return told, ()
    listeners = _listeners(tree.brokers(ask_tree)[0], elected)
    address = listeners.get(OWN_LISTENER) or next(iter(listeners.values()), None)
    node = None if address is None else Node(elected.broker_id, *address)
    with_it = tuple(
        replace(group, coordinator=node, coordinator_epoch=elected.epoch)
        if nodes[group.group_id].elected is not None
        else group
        for group in told
    )
    if node is not None:
        return with_it, ()
    what = f"broker {elected.broker_id}"
    why = f"{what} is the elected coordinator, and is not registered: where it listens is not known"
    return with_it, (ItemError(what, ErrorCode.COORDINATOR_NOT_AVAILABLE.name, why),)


def _listeners(brokers: Iterable[Broker], elected: Elected) -> Mapping[str, tuple[str, int]]:
    return next((broker.listeners for broker in brokers if broker.id == elected.broker_id), {})
