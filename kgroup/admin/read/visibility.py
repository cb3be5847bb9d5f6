"""The groups, topics and committed offsets that cannot be seen from here, and why.

Brokers silently omit what a principal may not see, and a broker that is down lists no groups: an answer is
complete only where something proves it. Only this module requests the proof
(docs/decisions/0023-what-cannot-be-seen.md).
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import count

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import ItemError, Partition, TopicDescription
from kgroup.admin.refusals import code_name, is_gone, item_error
from kgroup.client.retry import NOT_PROCESSED
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse

PROBES = ("kgroup.may.i.see.any.topic", "_may.i.see.any.topic.kgroup")
"""Names that no topic has. A principal may describe them only if it may describe every topic: brokers refuse
a forbidden name, whether the topic exists or not. Two, so that one prefix does not allow both."""
GROUP_PROBES = ("kgroup.may.i.see.any.group", "_may.i.see.any.group.kgroup")
DESCRIBE_CLUSTER = 60
DESCRIBE_BIT = 1 << 8
NOT_ASKED = -(1 << 31)
"""The value brokers send in place of operations that were not requested."""
RIGHTS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED.name,
        ErrorCode.GROUP_AUTHORIZATION_FAILED.name,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.name,
    }
)
"""The codes of errors about missing rights."""
_SHOW_LEADERS = (
    "brokers are down or the partitions offline; kgroup cluster topics --internal shows the leaders"
)
_GRANT_TOPICS = "Describe on Topic * shows all: ask as a principal that has it"
_GRANT_GROUPS = "Describe on Cluster, or on Group *, shows all: ask as a principal that has it"


class GroupSight:
    """Proof that the brokers list all groups: created before they are asked, `unseen` called afterwards.

    A broker that leads a partition and has not loaded it lists none of its groups and no error. So each is
    asked for one group of every partition that it leads, before it lists: NOT_COORDINATOR reports those not
    loaded. A partition that has another leader afterwards is not proven either.
    """

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._before = _offsets_partitions(cluster)
        self._idle: dict[int, set[int]] = {}

    def probe(self, node: int, left_s: float) -> None:
        """Ask a broker for the partitions that it leads; raise what `ClusterView.ask` does."""
        if isinstance(self._before, KgroupError):
            return
        from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

        names = _one_group_of_each(len(self._before))
        asked = {names[p.partition]: p.partition for p in self._before if p.leader == node}
        if not asked:
            return
        request = DescribeGroupsRequest(groups=tuple(asked))
        answer = self._cluster.ask(node, request, DescribeGroupsResponse, timeout_s=left_s)
        codes = {group.group_id: group.error_code for group in answer.groups}
        self._idle[node] = {asked[name] for name, code in codes.items() if code in NOT_PROCESSED}

    def unseen(self, listed: Collection[int], failed: Collection[int]) -> tuple[ItemError, ...]:
        """Return why there may be more groups than listed, apart from those of brokers that `failed`."""
        errors = list(self._unseen_partitions(listed, failed))
        try:
            all_seen = sees_every_group(self._cluster)
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

    def _unseen_partitions(self, listed: Collection[int], failed: Collection[int]) -> Iterable[ItemError]:
        before, after = self._before, _offsets_partitions(self._cluster)
        if isinstance(before, KgroupError):
            yield _leaders_unknown(before)
            return
        if isinstance(after, KgroupError):
            yield _leaders_unknown(after)
            return
        led = {p.partition: (p.leader, p.leader_epoch) for p in before}
        idle = set[int]().union(*self._idle.values())
        dark, loading = set[int](), set[int]()
        for p in after:
            if p.leader in failed:
                continue  # its groups are reported with the broker
            if p.leader not in listed:
                dark.add(p.partition)
            elif p.partition in idle or led.get(p.partition) != (p.leader, p.leader_epoch):
                loading.add(p.partition)
        if dark:
            yield _not_seen(dark, "no broker that answers leads", _SHOW_LEADERS)
        if loading:
            hint = "retry once it has loaded the groups"
            yield _not_seen(loading, "a broker has just begun to lead", hint)


def _leaders_unknown(error: KgroupError) -> ItemError:
    message = f"whether all partitions of {OFFSETS_TOPIC} have leaders is unknown: {error.message}"
    return ItemError(OFFSETS_TOPIC, code_name(error), message, error.hint)


def _offsets_partitions(cluster: ClusterView) -> tuple[Partition, ...] | KgroupError:
    try:
        topic = cluster.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    except KgroupError as error:
        return error
    if isinstance(topic, TopicDescription):
        return topic.partitions
    return () if is_gone(topic) else topic


def _not_seen(partitions: Collection[int], why: str, hint: str) -> ItemError:
    numbers = ", ".join(map(str, sorted(partitions)))
    message = f"groups of {OFFSETS_TOPIC} {numbers} are not seen: {why} "
    message += "it" if len(partitions) == 1 else "them"
    return ItemError(OFFSETS_TOPIC, ErrorCode.COORDINATOR_NOT_AVAILABLE.name, message, hint)


@cache
def _one_group_of_each(partitions: int) -> Mapping[int, str]:
    """Return for each partition of `__consumer_offsets` a group that it would hold."""
    by_partition: dict[int, str] = {}
    for number in count():
        if len(by_partition) == partitions:
            return by_partition
        name = f"kgroup.is.it.loaded.{number}"
        by_partition.setdefault(offsets_partition_of(name, partitions), name)
    raise AssertionError


def sees_every_group(cluster: ClusterView) -> bool:
    """Return whether ListGroups is complete for this principal: DESCRIBE on the cluster, or on any group.

    A denial for one group despite a right to all others goes unnoticed without DESCRIBE on the cluster. Raise
    the failure to find out.
    """
    failure: KgroupError | None = None
    try:
        operations = cluster_operations(cluster)
    except KgroupError as error:
        operations, failure = NOT_ASKED, error
    if operations & DESCRIBE_BIT and operations != NOT_ASKED:
        return True
    # DescribeGroups and not FindCoordinator, which creates the offsets topic of a fresh cluster.
    from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

    probe = DescribeGroupsRequest(groups=GROUP_PROBES)
    groups = cluster.ask_again(None, probe, DescribeGroupsResponse).groups
    if groups and all(g.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED for g in groups):
        return True
    if failure is not None:
        raise failure
    return False


def cluster_operations(cluster: ClusterView) -> int:
    """Return the bits of the operations allowed on the cluster; NOT_ASKED where no broker reports them."""
    from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

    def ask(left_s: float) -> int:
        if cluster.transport.versions(None, DESCRIBE_CLUSTER) is not None:
            asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
            reply = cluster.ask(None, asked, DescribeClusterResponse, timeout_s=left_s)
            return reply.cluster_authorized_operations
        older = MetadataRequest(
            topics=(), allow_auto_topic_creation=False, include_cluster_authorized_operations=True
        )
        answer = cluster.ask(None, older, MetadataResponse, versions=(4, 10), timeout_s=left_s)
        return answer.cluster_authorized_operations

    return cluster.retry.call(ask, idempotent=True)


def topics_asked(cluster: ClusterView, names: Iterable[str]) -> tuple[Answers[TopicDescription], bool]:
    """Return the topics named, as `ClusterView.topics`, and whether this principal may see all topics.

    Both in one request. A denial for one topic despite a right to all others goes unnoticed.
    """
    answers = cluster.topics({*names, *PROBES})
    probed = [answers.pop(name, None) for name in PROBES]
    return answers, not any(_denied(answer) for answer in probed)


def sees_every_topic(cluster: ClusterView) -> bool:
    """Return whether this principal may see every topic and committed offset."""
    return topics_asked(cluster, ())[1]


def unseen_topics() -> ItemError:
    """Report that a list of topics may lack some."""
    message = "brokers list only the topics that this principal may describe, and it may not describe all: "
    message += "it lacks Describe on Topic *"
    return ItemError("topics", ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, message, _GRANT_TOPICS)


def unseen_offsets(group_id: str) -> ItemError:
    """Report that a group may have committed offsets which brokers omitted."""
    message = f"{group_id}: may be incomplete: brokers omit committed offsets of topics that this "
    message += "principal may not describe, and it lacks Describe on Topic *"
    return ItemError(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, message, _GRANT_TOPICS)


def may_not_see(cluster: ClusterView, topic: str) -> tuple[ItemError, ...]:
    """Report that brokers omit this topic's offsets where the principal may not describe it."""
    described = cluster.topics([topic]).get(topic)
    if isinstance(described, BrokerRefused) and _denied(described):
        return (item_error(topic, described),)
    return ()


def may_see(names: Iterable[str], topics: Mapping[str, object]) -> bool:
    """Return whether none of these topics was refused for lack of rights."""
    return not any(_denied(topics.get(name)) for name in names)


def _denied(answer: object) -> bool:
    return isinstance(answer, BrokerRefused) and answer.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
