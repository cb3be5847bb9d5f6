"""Every group of the cluster, broker by broker; one that does not answer does not hide the others."""

from __future__ import annotations

from dataclasses import replace

from kgroup.admin.discovery import Cluster
from kgroup.admin.models import GroupListing, ItemError, Listing, Node
from kgroup.admin.refusals import check, code_name
from kgroup.errors import KgroupError
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(cluster: Cluster, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> Listing:
    """The groups of every broker, by id, limited to states and types (in any case) where given.

    Brokers that fail are named in `errors`; raises the failure when no broker answers.
    """
    brokers = cluster.brokers()
    groups: dict[str, GroupListing] = {}
    errors: list[ItemError] = []
    failure: KgroupError | None = None
    for broker in brokers:
        try:
            found = _groups_of(cluster, broker)
        except KgroupError as error:
            failure = error
            errors.append(ItemError(f"broker {broker.id}", code_name(error), error.message, error.hint))
        else:
            groups.update((group.group_id, group) for group in found)
    if failure and len(errors) == len(brokers):
        raise failure
    chosen = (group for group in groups.values() if _wanted(group, states, types))
    return Listing(tuple(sorted(chosen, key=lambda group: group.group_id)), tuple(errors))


def with_member_counts(cluster: Cluster, listing: Listing) -> Listing:
    """The same listing with `members` filled in where the group can be described."""
    from kgroup.admin.describe import groups_only

    described = groups_only(cluster, [group.group_id for group in listing.groups])
    counts = {
        group_id: len(found.members)
        for group_id, found in described.items()
        if not isinstance(found, KgroupError)
    }
    return replace(
        listing, groups=tuple(replace(group, members=counts.get(group.group_id)) for group in listing.groups)
    )


def _groups_of(cluster: Cluster, broker: Node) -> list[GroupListing]:
    def ask(left_s: float) -> ListGroupsResponse:
        answer = cluster.transport.request(broker.id, ListGroupsRequest(), timeout_s=left_s)
        assert isinstance(answer, ListGroupsResponse)
        check(answer.error_code, f"listing the groups of broker {broker.id}")
        return answer

    answer = cluster.retry.call(ask, idempotent=True)
    return [
        GroupListing(g.group_id, g.group_type.lower(), g.protocol_type, g.group_state, None, broker)
        for g in answer.groups
    ]


def _wanted(group: GroupListing, states: tuple[str, ...], types: tuple[str, ...]) -> bool:
    in_state = not states or group.state.lower() in {state.strip().lower() for state in states}
    return in_state and (not types or group.type in {name.strip().lower() for name in types})
