"""The groups that read a topic, or have static members; and those for which this is unknown."""

from dataclasses import replace

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import SHARE, GroupDescription, ItemError, Listing
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.lag import readers_known, topics_read
from kgroup.admin.read.share_offsets import topics_stored
from kgroup.admin.read.visibility import may_not_see
from kgroup.admin.refusals import item_error
from kgroup.errors import ErrorCode, KgroupError


def reading(
    cluster: ClusterView, listing: Listing, topic: str | None, static_only: bool
) -> tuple[Listing, Answers[GroupDescription]]:
    """Return the groups that read `topic`, or have static members, and all groups as described.

    Groups for which this is unknown become errors.
    """
    ids = [group.group_id for group in listing.groups]
    described = groups_only(cluster, ids)
    share = {name for name, group in described.items() if getattr(group, "type", None) == SHARE}
    offsets = topics_stored(cluster, ids, share) if topic is not None else {}
    unread = () if topic is None else may_not_see(cluster, topic)
    chosen, errors = set(), []
    for group_id, group in described.items():
        stored = offsets.get(group_id, frozenset())
        if isinstance(group, KgroupError):
            errors.append(item_error(group_id, group))
            continue
        concerns: bool | None = True
        if topic is not None:
            # Whether it subscribes to the topic, owns or committed it; None when unknown.
            members = group.known_members
            reads = topic in topics_read(group, [topic]) or (
                not isinstance(stored, KgroupError) and topic in stored
            )
            subscriptions_known = readers_known(group) and all(
                m.subscribed_topics is not None for m in members
            )
            known = subscriptions_known and not isinstance(stored, KgroupError)
            concerns = True if reads else False if known else None
        static = group.has_static_members if static_only else True
        if concerns and static:
            chosen.add(group_id)
        elif concerns is not False and static is None:
            message = f"whether {group_id} has static members is not known: the broker does not say"
            hint = "Kafka 2.4 and later report instance ids, and 4.2 and later the members of streams groups"
            errors.append(ItemError(group_id, ErrorCode.UNSUPPORTED_VERSION.name, message, hint))
        elif concerns is None and static and not isinstance(stored, KgroupError):
            message = (
                f"whether {group_id} reads the topic is not known: what its members read is not reported now"
            )
            hint = (
                "retry once it is stable; --protocol-type consumer leaves out groups that are not consumers'"
            )
            errors.append(ItemError(group_id, "NOT_TOLD", message, hint))
        if isinstance(stored, KgroupError):
            errors.append(item_error(group_id, stored))
    groups = tuple(group for group in listing.groups if group.group_id in chosen)
    return replace(listing, groups=groups, errors=(*listing.errors, *errors, *unread)), described
