"""Every group of the cluster, broker by broker; a broker that does not answer hides no other."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import GroupDescription, GroupListing, Listing, Node
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.visibility import GroupSight
from kgroup.admin.refusals import check, item_error
from kgroup.errors import KgroupError
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(
    cluster: ClusterView,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    *,
    count_members: bool = False,
) -> Listing:
    """Return the groups of every broker, by id, limited to states and types (in any case) where given.

    `errors` names what cannot be seen: brokers that fail, and all else that hides groups (visibility.py). Old
    brokers list no states and no types: to filter by these, the groups are described. Raise the failure when
    no broker answers. To count members costs a describe.
    """
    sight = GroupSight(cluster)
    brokers = cluster.brokers()
    groups: dict[str, GroupListing] = {}
    failed: dict[int, KgroupError] = {}
    answers = cluster.at_once({broker.id: partial(_groups_of, cluster, broker, sight) for broker in brokers})
    for node, answer in answers.items():
        if isinstance(answer, KgroupError):
            failed[node] = answer
        else:
            groups.update((group.group_id, group) for group in answer)
    if failed and len(failed) == len(brokers):
        raise next(iter(failed.values()))
    cluster.learn({g.group_id: g.coordinator for g in groups.values() if g.coordinator is not None})
    listed = {broker.id for broker in brokers} - failed.keys()
    cluster.listed_as.update({g.group_id: g.type for g in groups.values() if g.type is not None})
    errors = [
        *(item_error(f"broker {node}", error) for node, error in failed.items()),
        *sight.unseen(listed, failed),
    ]
    listing = Listing(tuple(sorted(groups.values(), key=lambda group: group.group_id)), tuple(errors))
    listing = _filtered(cluster, listing, _words(states), _words(types))
    return with_members(cluster, listing) if count_members else listing


def with_members(
    cluster: ClusterView, listing: Listing, known: Answers[GroupDescription] | None = None
) -> Listing:
    """Return the same listing with members counted, and with states and types that no broker listed.

    Groups that cannot be described keep what is known of them, and are among the errors. Only groups neither
    in `known` nor counted already are requested.
    """
    described = dict(known or {})
    missing = [g.group_id for g in listing.groups if g.members is None and g.group_id not in described]
    asked = groups_only(cluster, missing)
    errors = [item_error(name, error) for name, error in asked.items() if isinstance(error, KgroupError)]
    described |= asked
    groups = tuple(
        GroupListing(
            group.group_id,
            group.type or seen.type,
            group.protocol_type,
            group.state or seen.state,
            seen.member_count,
            group.coordinator,
        )
        if isinstance(seen := described.get(group.group_id), GroupDescription)
        else group
        for group in listing.groups
    )
    return replace(listing, groups=groups, errors=(*listing.errors, *errors))


def _filtered(cluster: ClusterView, listing: Listing, states: set[str], types: set[str]) -> Listing:
    """Return the groups in one of the states and of one of the types; errors name the undecided."""

    def unlisted(group: GroupListing) -> bool:
        return bool((states and group.state is None) or (types and group.type is None))

    def wanted(group: GroupListing) -> bool:
        in_state = not states or (group.state or "").lower() in states
        return in_state and (not types or group.type in types)

    old = tuple(filter(unlisted, listing.groups))
    if old:
        filled = with_members(cluster, replace(listing, groups=old))
        known = {group.group_id: group for group in filled.groups}
        groups = tuple(known.get(group.group_id, group) for group in listing.groups)
        listing = Listing(groups, filled.errors)
    return replace(listing, groups=tuple(filter(wanted, listing.groups)))


def _words(values: Iterable[str]) -> set[str]:
    return {value.strip().lower() for value in values}


def _groups_of(cluster: ClusterView, broker: Node, sight: GroupSight) -> list[GroupListing]:
    def ask(left_s: float) -> ListGroupsResponse:
        sight.probe(broker.id, left_s)
        answer = cluster.ask(broker.id, ListGroupsRequest(), ListGroupsResponse, timeout_s=left_s)
        check(answer.error_code, f"listing the groups of broker {broker.id}")
        return answer

    answer = cluster.retry.call(ask, idempotent=True)
    return [
        GroupListing(
            g.group_id, g.group_type.lower() or None, g.protocol_type, g.group_state or None, None, broker
        )
        for g in answer.groups
    ]
