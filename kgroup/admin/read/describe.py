"""Groups in full, with their type found out and one view for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kgroup.admin.discovery import Answers, Ask, ClusterView, R
from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    DEAD,
    SHARE,
    STREAM_ASSIGNOR,
    Commits,
    Description,
    GroupDescription,
    ItemError,
    Node,
    OffsetRow,
    TopicDescription,
)
from kgroup.admin.read.members import classic_member, consumer_member, in_order, partitions_of
from kgroup.admin.read.visibility import may_see, topics_asked, unseen_offsets
from kgroup.admin.refusals import Described, hint_of, is_gone, item_error, not_found, undescribed
from kgroup.domain import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TopicPartition,
    first_of,
    grouped,
    offsets_partition_of,
    value,
)
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.protocol.codec import Message

if TYPE_CHECKING:
    from kgroup.admin.read.in_sync import InSync
    from kgroup.admin.read.lag import Ends, Sight
    from kgroup.admin.read.offsets import Held
    from kgroup.admin.read.readable import Logs
    from kgroup.admin.read.share_offsets import ShareOffsets


DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE = 15, 69
INSTANCE_IDS_SINCE = 4
_ANOTHER_TYPE = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID}
)


def describe(
    cluster: ClusterView,
    group_ids: Iterable[str],
    *,
    offsets: bool = True,
    expected: bool = True,
    topologies: bool = True,
) -> Description:
    """Return each group with members, and with offsets, lag and findings unless `offsets` is False.

    `expected` adds the members each group expects, by its settings; `topologies` the topologies that Kafka
    Streams applications report, which a plugin of the broker has to look up; neither comes without offsets.

    Groups that cannot be described are in `errors`; parts of a group that cannot be read are in its own.
    """
    named = list(dict.fromkeys(group_ids))
    topics = Topics(cluster) if offsets else None
    extras = _Extras(offsets and expected, offsets and topologies)
    return _look(cluster, named, topics, extras)


def describe_each(
    cluster: ClusterView,
    group_ids: Iterable[str],
    *,
    expected: bool = True,
    topologies: bool = True,
    now_ms: int | None = None,
    held: bool = False,
) -> Iterator[Description]:
    """Yield the same with offsets, in rounds: for more groups than memory should hold.

    With `held` also those that transactions hold open.
    """
    topics, extras = Topics(cluster, now_ms), _Extras(expected, topologies, held)
    return in_rounds(group_ids, lambda named: _look(cluster, named, topics, extras))


class _Extras(NamedTuple):
    """The parts requested beyond members and offsets (`describe`)."""

    expected: bool
    topologies: bool
    held: bool = False


def _look(
    cluster: ClusterView, group_ids: Sequence[str], topics: Topics | None, extras: _Extras
) -> Description:
    answers = groups_only(cluster, group_ids, topologies=extras.topologies)
    groups = [group for group in answers.values() if isinstance(group, GroupDescription)]
    if extras.expected:
        from kgroup.admin.read.registration import with_registrations

        groups = with_registrations(cluster, groups)
    held: Held | None = {} if extras.held else None
    if topics is not None:
        groups = _with_offsets(cluster, groups, topics, held)
    errors = tuple(
        item_error(name, error) for name, error in answers.items() if isinstance(error, KgroupError)
    )
    return Description(tuple(groups), errors, held or {})


def groups_only(
    cluster: ClusterView, group_ids: Iterable[str], *, topologies: bool = False
) -> Answers[GroupDescription]:
    """Return each group with its members and coordinator, without anything about offsets.

    With `topologies` as `describe`.
    """
    answers = cluster.ask_coordinators(
        group_ids,
        lambda node, groups, left_s: _ask(cluster, node, groups, left_s, topologies),
        idempotent=True,
    )
    coordinators = cluster.coordinators(answers)
    for group_id, answer in answers.items():
        node = coordinators[group_id]
        if isinstance(answer, GroupDescription) and isinstance(node, Node):
            answer.add(coordinator=node)
    return answers


def one_group(cluster: ClusterView, group_id: str) -> GroupDescription:
    """Return the same for one group; raise why it cannot be described."""
    group = groups_only(cluster, [group_id])[group_id]
    if isinstance(group, KgroupError):
        raise group
    return group


def _ask(
    cluster: ClusterView, node: int, groups: Sequence[str], left_s: float, topologies: bool
) -> Answers[GroupDescription]:
    """Describe as each type in turn; the broker says GROUP_ID_NOT_FOUND for a group of another type.

    First as the type it was listed with, if it was: that may have changed since.
    """

    def request(message: Message, response: type[R], /) -> R:
        return cluster.ask(node, message, response, timeout_s=left_s)

    answers: Answers[GroupDescription] = {}
    rest = list(groups)

    def try_as(describe: Callable[[Sequence[str]], Answers[GroupDescription]], named: Sequence[str]) -> None:
        nonlocal rest
        if named:
            answers.update(describe(named))
            rest = [group for group in rest if group not in answers or _is_another_type(answers[group])]

    def as_consumer(named: Sequence[str]) -> Answers[GroupDescription]:
        from kgroup.protocol.messages.consumer_group_describe import (
            ConsumerGroupDescribeRequest,
            ConsumerGroupDescribeResponse,
        )

        answers: Answers[GroupDescription] = dict.fromkeys(named, not_found(""))
        asked = tuple(group for group in named if group)  # an empty id is an error for all of the batch
        message = ConsumerGroupDescribeRequest(group_ids=asked)
        told = request(message, ConsumerGroupDescribeResponse).groups if asked else ()
        # Before 4.0 brokers look for each group in the offsets partitions of all: the best answer counts.
        for result in sorted(told, key=_how_sure):
            if (failed := undescribed(result)) is not None:
                answers[result.group_id] = failed
                continue
            members = tuple(consumer_member(member, result.assignment_epoch) for member in result.members)
            answers[result.group_id] = GroupDescription(
                result.group_id,
                CONSUMER,
                CONSUMER,
                result.group_state,
                assignor=result.assignor_name or None,
                group_epoch=result.group_epoch,
                assignment_epoch=result.assignment_epoch,
                members=in_order(members),
            )
        return answers

    def as_classic(named: Sequence[str]) -> Answers[GroupDescription]:
        return _as_classic(request, named, reports_instances(cluster, node))

    if cluster.transport.versions(node, CONSUMER_GROUP_DESCRIBE) is not None:
        late = {group for group in rest if cluster.listed_as.get(group) == CLASSIC}
        try_as(as_consumer, [group for group in rest if group not in late])
        try_as(as_classic, rest)
        try_as(as_consumer, [group for group in rest if group in late])
    else:
        try_as(as_classic, rest)
    if rest:
        from kgroup.admin.read.describe_listed import as_listed

        answers.update(as_listed(cluster, node, request, rest, topologies=topologies))
    return answers


def reports_instances(cluster: ClusterView, node: int) -> bool:
    """Return whether DescribeGroups carries instance ids: from Kafka 2.4 on; 2.3 has static members."""
    served = cluster.transport.versions(node, DESCRIBE_GROUPS)
    return served is None or served[-1] >= INSTANCE_IDS_SINCE


def _how_sure(group: Described) -> tuple[bool, bool]:
    return group.error_code == ErrorCode.NONE, group.error_code not in _ANOTHER_TYPE


def _is_another_type(answer: GroupDescription | KgroupError) -> bool:
    return isinstance(answer, BrokerRefused) and answer.code in _ANOTHER_TYPE


def _as_classic(request: Ask, groups: Sequence[str], reports_instances: bool) -> Answers[GroupDescription]:
    from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

    answers: Answers[GroupDescription] = {}
    for answer in request(DescribeGroupsRequest(groups=tuple(groups)), DescribeGroupsResponse).groups:
        if (failed := undescribed(answer)) is not None:
            answers[answer.group_id] = failed
        elif answer.group_state == DEAD:  # what an unknown group is before version 6
            answers[answer.group_id] = not_found(answer.group_id)
        else:
            group = GroupDescription(
                answer.group_id,
                CLASSIC,
                answer.protocol_type,
                answer.group_state,
                assignor=answer.protocol_data or None,
                members=in_order(
                    classic_member(m, answer.group_state, answer.protocol_type, reports_instances)
                    for m in answer.members
                ),
            )
            # The members of plain consumers need no decoding.
            if group.protocol_type not in ("", CONSUMER) or group.assignor == STREAM_ASSIGNOR:
                from kgroup.admin.read.applications import with_application

                group = with_application(group, answer.members, reports_instances)
            answers[answer.group_id] = group
    return answers


def _with_offsets(
    cluster: ClusterView, groups: Sequence[GroupDescription], topics: Topics, held: Held | None
) -> list[GroupDescription]:
    """Return the groups with offsets, lag and findings: one round for all of them."""
    # Not at the top: listing counts members with this module and pays for its imports.
    from kgroup.admin.read.group_facts import unassigned_patterns
    from kgroup.admin.read.lag import (
        log_ends,
        log_starts,
        never_committed,
        topics_matched,
        topics_read,
    )
    from kgroup.admin.read.share_offsets import stored_offsets

    share = {group.group_id for group in groups if group.type == SHARE}
    offsets, shared = stored_offsets(cluster, [group.group_id for group in groups], share, held)
    stored = {name: Commits() if isinstance(own, KgroupError) else own for name, own in offsets.items()}
    by_name = {group.group_id: group for group in groups}
    matched = {name for name, group in by_name.items() if unassigned_patterns(group)}
    by_pattern = any(member.subscribed_regex for group in groups for member in group.known_members)
    visible = topics.visible if by_pattern else ()
    read = {name: topics_read(group, visible) for name, group in by_name.items()}
    new = {name: topics_matched(group, visible) - read[name] for name, group in by_name.items()}
    needed = set().union(*read.values(), *new.values()) | {
        name
        for group in groups
        for part in (() if group.topology is None else group.topology.subtopologies)
        for _, name in part.by_role
    }
    if share:
        needed.add(SHARE_STATE_TOPIC)
    alike = {id(commits.places): commits.places for commits in stored.values()}
    committed = set[TopicPartition]().union(*alike.values())
    if groups:
        topics.learn({p.topic for p in committed} | needed | {OFFSETS_TOPIC})
    unread = {
        name: never_committed(stored[name], group.known_members, read[name] | new[name], topics.counts)
        for name, group in by_name.items()
    }
    known_shared = {name: answer for name, answer in shared.items() if not isinstance(answer, KgroupError)}
    for name, answer in known_shared.items():
        unread[name] |= answer.without_start
    bare = set().union(*unread.values())
    ends = log_ends(cluster, bare | committed, topics.known)
    starts = log_starts(cluster, bare, ends, topics.known)
    maybe = {partition for name in new for partition in unread[name] if partition.topic in new[name]}
    sight = topics.look_behind(groups, stored, ends, starts, maybe)
    for name, matching in new.items():
        unread[name] -= {p for p in unread[name] - topics.begun if p.topic in matching}
    seen = _Seen(topics, sight, read, matched, unread, known_shared)
    return [_complete(group, offsets[group.group_id], seen) for group in groups]


class Topics:
    """The cluster's answers about the groups' topics: each is requested once."""

    def __init__(self, cluster: ClusterView, now_ms: int | None = None) -> None:
        self.known: Answers[TopicDescription] = {}
        self.counts: dict[str, int | None] = {}
        self.all_seen = True
        self.in_sync: InSync | None = None
        self.begun: frozenset[TopicPartition] = frozenset()
        self._cluster = cluster
        self._logs: Logs | None = None
        self._began_ms = cluster.now_ms() if now_ms is None else now_ms

    @cached_property
    def visible(self) -> Collection[str]:
        """The names of all topics that may be seen: a large answer."""
        return self._cluster.topics(None).keys()

    def learn(self, names: Iterable[str]) -> None:
        """Request the topics that were not requested before, all in one request."""
        new = set(names) - self.known.keys()
        if not new:
            return
        topics, self.all_seen = topics_asked(self._cluster, new)
        self.known |= topics
        # Partitions of the topics that are known to exist or known not to.
        counts: dict[str, int | None] = {}
        for name, topic in topics.items():
            if isinstance(topic, TopicDescription):
                counts[name] = len(topic.partitions)
            elif is_gone(topic):
                counts[name] = None
        self.counts |= counts
        if isinstance(stored := topics.get(OFFSETS_TOPIC), TopicDescription):
            from kgroup.admin.read.in_sync import InSync

            self.in_sync = InSync(self._cluster, stored)

    def look_behind(
        self,
        groups: Collection[GroupDescription],
        stored: Mapping[str, Commits],
        ends: Ends,
        starts: Ends,
        maybe: Collection[TopicPartition],
    ) -> Sight:
        """Return what is left to read in the logs: of those that groups have not read to the end.

        `maybe` are partitions that match a pattern, and that no member has: of them too, if they are in
        `begun` afterwards.
        """
        from kgroup.admin.read.lag import Sight
        from kgroup.admin.read.leader_epochs import epoch_ends
        from kgroup.admin.read.offsets import ListedOffset
        from kgroup.admin.read.open_transactions import producers
        from kgroup.admin.read.readable import Logs

        last = {partition: end.offset for partition, end in ends.items() if isinstance(end, ListedOffset)}
        behind: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        for alike in grouped((id(commits.places), commits) for commits in stored.values()).values():
            at_each = zip(*[commits.offsets for commits in alike], strict=True)
            for partition, at in zip(alike[0].places, at_each, strict=True):
                if those := {offset for offset in set(at) if offset < last.get(partition, 0)}:
                    behind[partition] |= those
        for partition, start in starts.items():
            begins = start.offset if isinstance(start, ListedOffset) else last.get(partition, 0)
            if begins < last.get(partition, 0) and not (begins and partition in maybe):
                behind[partition].add(begins)
        epochs = epoch_ends(self._cluster, stored.values(), ends, self.known)
        if not behind:
            return Sight(ends, starts, epochs=epochs)
        self._logs = logs = self._logs or Logs(self._cluster)
        logs.look(behind, self.known)
        views = logs.views
        held = {
            partition
            for partition in behind
            if isinstance(stable := views[partition].stable, int) and stable < last[partition]
        }
        # How long records have waited matters where somebody is to read them, and where readers are held
        # back. Members of a share group that joined a moment ago have nothing yet, and are to read all.
        owned = {p for group in groups for m in group.known_members for p in partitions_of(m.assignment)}
        shared = (group for group in groups if group.type == SHARE and group.known_members)
        owned = owned.union(*(stored[group.group_id].places for group in shared))
        logs.recent((owned & behind.keys()) | held | (behind.keys() & maybe), self.known, self._began_ms)
        self.begun = logs.begun(behind.keys() & maybe, self.known)
        writers = producers(self._cluster, held, self.known)
        logs.hold(held, writers)
        return Sight(ends, starts, views, writers, epochs)


@value
class _Seen:
    """The cluster's answers about the topics of some groups."""

    topics: Topics
    sight: Sight
    read: Mapping[str, set[str]]
    matched: Collection[str]
    unread: Mapping[str, Collection[TopicPartition]]
    shared: Mapping[str, ShareOffsets]


def _complete(group: GroupDescription, offsets: Commits | KgroupError, seen: _Seen) -> GroupDescription:
    from kgroup.admin.read import findings, lag

    name, topics = group.group_id, seen.topics
    errors = list(group.errors)
    stored = None if isinstance(offsets, KgroupError) else offsets
    if isinstance(offsets, KgroupError):
        errors.append(item_error("offsets", offsets))
    unread = seen.unread[name]
    to_make = lag.rows_to_make(group, stored, seen.sight, unread)
    rows = () if to_make else lag.rows(group, stored, seen.sight, unread)
    if name in seen.shared:
        from kgroup.admin.read.share_offsets import share_rows, unread_starts

        errors += unread_starts(name, seen.shared[name], topics.known.get(SHARE_STATE_TOPIC))
        rows = share_rows(rows, seen.shared[name])
    errors += unread_ends(group.group_id, rows, "offsets")
    read = seen.read[name]
    # Where the members' topics are all visible, offsets of former topics do not matter to any reader. A
    # pattern that was resolved here may match topics that are hidden.
    all_read = read and name not in seen.matched and may_see(read, topics.known)
    left_out = not (topics.all_seen or all_read)
    if left_out:
        errors.append(unseen_offsets(group.group_id))
    counted = topics.counts.keys() >= read
    known = stored is not None and not left_out and counted and lag.readers_known(group)
    total = lag.total(rows, all_rows=known, lags=to_make.lags if to_make else ())
    partitions = topics.counts.get(OFFSETS_TOPIC)
    stored_in = offsets_partition_of(name, partitions) if partitions else None
    if topics.in_sync is not None and stored_in is not None:
        errors += topics.in_sync.unseen(stored_in)
    group.add(
        offsets=rows,
        total_lag=total.lag,
        lag_at_least=total.at_least,
        unknown_partitions=total.unknown,
        unreadable_lag=total.unreadable,
        errors=tuple(errors),
        # Others may have committed in its name: that there are none is reported where all can be seen.
        no_offsets=group.no_offsets if stored is not None and not stored.places and not left_out else None,
        offsets_partition=stored_in,
    )
    if to_make is not None:
        group.make_later(to_make)
    return group.add(findings=findings.find(group, topics.counts, topics.in_sync))


def unread_ends(group_id: str, offsets: Iterable[OffsetRow], item: str) -> Iterator[ItemError]:
    """Yield the log ends that could not be read, by reason; partitions that are gone are no failure."""
    unread = ((row.error_code, row) for row in offsets if row.error_code and not row.gone)
    for code, rows in grouped(unread).items():
        where = first_of([row.place for row in rows], 1)
        message = f"{group_id}: the end of {where} is not known: {rows[0].error}"
        yield ItemError(item, code, message, hint_of(code))


FIRST = 500
"""The number of groups in the first round, before their partitions are counted."""
ROWS = 50_000
MOST = 5_000


def in_rounds(
    group_ids: Iterable[str], look: Callable[[Sequence[str]], Description]
) -> Iterator[Description]:
    """Yield the result of `look` for the groups, in rounds and in the order given; at least one round.

    A failure of the first round is raised; one of a later round ends the rounds, and is reported for each
    group that is left.
    """
    names = list(dict.fromkeys(group_ids))
    start, size = 0, FIRST
    while True:
        named = names[start : start + size]
        try:
            description = look(named)
        except KgroupError as error:
            if not start:
                raise
            yield Description((), tuple(item_error(group, error) for group in names[start:]))
            return
        rows = sum(group.row_count for group in description.groups)
        yield description
        del description  # its groups are not kept while the next ones are requested
        start += size
        if start >= len(names):
            return
        size = min(max(ROWS * len(named) // max(rows, 1), 1), MOST)
