"""What of a cluster's groups, topics and committed offsets cannot be seen from here, and why.

Brokers leave out what a principal may not see, and one that is down lists no groups, both without a word: an
answer is complete only where something proves it. This is the one place that asks for the proof
(docs/decisions/0023-what-cannot-be-seen.md).
"""

from collections.abc import Collection, Iterable, Mapping

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import ItemError, Partition, TopicDescription
from kgroup.admin.refusals import code_name, is_gone, item_error
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse

PROBES = ("kgroup.may.i.see.any.topic", "_may.i.see.any.topic.kgroup")
"""Names that no topic has. A principal may describe them only if it may describe every topic: brokers refuse
a name that it may not, whether there is such a topic or not. Two, so that one prefix does not allow both."""
GROUP_PROBES = ("kgroup.may.i.see.any.group", "_may.i.see.any.group.kgroup")
DESCRIBE_CLUSTER = 60
DESCRIBE_BIT = 1 << 8
UNTOLD = -(1 << 31)
"""What brokers send in the place of operations that were not asked for."""
RIGHTS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED.name,
        ErrorCode.GROUP_AUTHORIZATION_FAILED.name,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name,
    }
)
_GRANT_TOPICS = "Describe on Topic * shows all: ask as a principal that has it"
_GRANT_GROUPS = "Describe on Cluster, or on Group *, shows all: ask as a principal that has it"


def unseen_groups(
    cluster: ClusterView, listed: Collection[int], failed: Collection[int]
) -> tuple[ItemError, ...]:
    """Why there may be more groups than the brokers `listed` told, those that `failed` to answer aside."""
    errors = list(_unseen_partitions(cluster, listed, failed))
    try:
        all_seen = sees_every_group(cluster)
    except KgroupError as error:
        message = f"whether this principal may describe every group is not known: {error.message}"
        errors.append(ItemError("groups", code_name(error), message, error.hint))
        return tuple(errors)
    if not all_seen:
        message = (
            "brokers list only the groups that this principal may describe, and it may not describe all: "
        )
        message += "it lacks Describe on Group *"
        errors.append(
            ItemError("groups", ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name, message, _GRANT_GROUPS)
        )
    return tuple(errors)


def _unseen_partitions(
    cluster: ClusterView, listed: Collection[int], failed: Collection[int]
) -> Iterable[ItemError]:
    try:
        topic = cluster.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    except KgroupError as error:
        topic = error
    if isinstance(topic, TopicDescription):
        yield from _without_answer(topic.partitions, listed, failed)
    elif not is_gone(topic):
        message = f"whether all partitions of {OFFSETS_TOPIC} have leaders is unknown: {topic.message}"
        yield ItemError(OFFSETS_TOPIC, code_name(topic), message, topic.hint)


def _without_answer(
    partitions: Iterable[Partition], listed: Collection[int], failed: Collection[int]
) -> Iterable[ItemError]:
    """Partitions whose groups nobody listed; those of brokers that failed are told with the broker."""
    dark = [p for p in partitions if p.leader not in listed and p.leader not in failed]
    if not dark:
        return
    numbers = ", ".join(str(p.partition) for p in dark)
    message = f"groups of {OFFSETS_TOPIC} {numbers} are not seen: no broker that answers leads "
    message += "it" if len(dark) == 1 else "them"
    hint = "brokers are down or the partitions offline; kgroup cluster topics --internal shows the leaders"
    yield ItemError(OFFSETS_TOPIC, ErrorCode.COORDINATOR_NOT_AVAILABLE.name, message, hint)


def sees_every_group(cluster: ClusterView) -> bool:
    """Whether ListGroups tells this principal all: DESCRIBE on the cluster, or on any group.

    A denial of one group beside a right to all others goes unnoticed without DESCRIBE on the cluster. Raises
    what kept it from being found out.
    """
    failure: KgroupError | None = None
    try:
        operations = cluster_operations(cluster)
    except KgroupError as error:
        operations, failure = UNTOLD, error
    if (operations & DESCRIBE_BIT and operations != UNTOLD) or _may_describe_any_group(cluster):
        return True
    if failure is not None:
        raise failure
    return False


def cluster_operations(cluster: ClusterView) -> int:
    """Return the bits of the operations allowed on the cluster; UNTOLD where no broker tells them."""
    from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

    def ask(left_s: float) -> int:
        if cluster.transport.versions(None, DESCRIBE_CLUSTER) is not None:
            asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
            told = cluster.ask(None, asked, DescribeClusterResponse, timeout_s=left_s)
            return told.cluster_authorized_operations
        older = MetadataRequest(
            topics=(), allow_auto_topic_creation=False, include_cluster_authorized_operations=True
        )
        answer = cluster.ask(None, older, MetadataResponse, versions=(4, 10), timeout_s=left_s)
        return answer.cluster_authorized_operations

    return cluster.retry.call(ask, idempotent=True)


def _may_describe_any_group(cluster: ClusterView) -> bool:
    # DescribeGroups and not FindCoordinator, which creates the offsets topic of a fresh cluster.
    from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

    probe = DescribeGroupsRequest(groups=GROUP_PROBES)
    told = cluster.ask_again(None, probe, DescribeGroupsResponse).groups
    return bool(told) and all(g.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED for g in told)


def topics_asked(cluster: ClusterView, names: Iterable[str]) -> tuple[Answers[TopicDescription], bool]:
    """Return the topics named, as `ClusterView.topics`, and whether this principal may see all there are.

    Both in one request. A denial of one topic beside a right to all others goes unnoticed.
    """
    answers = cluster.topics({*names, *PROBES})
    probed = [answers.pop(name, None) for name in PROBES]
    return answers, not any(_denied(answer) for answer in probed)


def sees_every_topic(cluster: ClusterView) -> bool:
    """Whether lists of topics and of committed offsets tell this principal all."""
    return topics_asked(cluster, ())[1]


def unseen_topics() -> ItemError:
    """Report that a list of topics may lack some."""
    message = "brokers list only the topics that this principal may describe, and it may not describe all: "
    message += "it lacks Describe on Topic *"
    return ItemError("topics", ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, message, _GRANT_TOPICS)


def unseen_offsets(group_id: str) -> ItemError:
    """Report that a group may have committed offsets which brokers omitted."""
    message = f"{group_id}: may be incomplete: brokers leave out committed offsets of topics that this "
    message += "principal may not describe, and it lacks Describe on Topic *"
    return ItemError(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, message, _GRANT_TOPICS)


def may_not_see(cluster: ClusterView, topic: str) -> tuple[ItemError, ...]:
    """Report that brokers omit this topic's offsets where the principal may not describe it."""
    found = cluster.topics([topic]).get(topic)
    if isinstance(found, BrokerRefused) and _denied(found):
        return (item_error(topic, found),)
    return ()


def may_see(names: Iterable[str], topics: Mapping[str, object]) -> bool:
    """Whether none of these topics was refused for lack of rights."""
    return not any(_denied(topics.get(name)) for name in names)


def _denied(answer: object) -> bool:
    return isinstance(answer, BrokerRefused) and answer.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
