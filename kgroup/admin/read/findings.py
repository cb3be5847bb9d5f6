"""What a description proves about a group, as findings: none needs history or a second poll."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from kgroup.admin.codes import CODES, UNSTORED
from kgroup.admin.models import (
    ASSIGNING,
    CLASSIC,
    CONSUMER,
    COOPERATIVE_STICKY,
    EMPTY,
    NOT_READY,
    PREPARING,
    RANGE,
    REBALANCING,
    SHARE,
    STABLE,
    STREAM_ASSIGNOR,
    STREAMS,
    Finding,
    GroupDescription,
    Member,
    Tasks,
)
from kgroup.admin.read.in_sync import InSync
from kgroup.admin.read.members import partitions_of
from kgroup.admin.read.readable import LOOK
from kgroup.admin.shell import command, list_item, word
from kgroup.admin.statuses import ERROR, PartitionStatus
from kgroup.domain import MemberStatus, TopicPartition, count_of, first_of, grouped, numbers_by_topic, ranges

SHOWN = 5
"""Things of a kind that a finding names, or shows as evidence."""
SPANS = 12
"""Ranges of partitions that a finding names."""
PartitionCounts = Mapping[str, int | None]
"""Partitions of each topic that was looked up; None for a topic that does not exist."""

Pair = tuple[str, str | None]


def find(
    group: GroupDescription, topics: PartitionCounts, in_sync: InSync | None = None
) -> tuple[Finding, ...]:
    """Return the findings of a group described with members and offsets, by code."""
    findings = [
        Finding(code, CODES[code].severity, message, hint)
        for code, check in _CHECKS.items()
        for message, hint in check(group, topics)
    ]
    if in_sync is not None and group.offsets_partition is not None:
        stored = in_sync.too_few(group.offsets_partition)
        findings += [Finding(UNSTORED, CODES[UNSTORED].severity, *pair) for pair in stored]
    return tuple(sorted(findings, key=attrgetter("code")))


def _behind(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    late = grouped((m.state, m) for m in group.known_members if m.state in _LATE)
    for state, members in late.items():
        if len(members) > SHOWN:
            hint = _deadlines(group) if state == MemberStatus.REVOKING else None
            yield f"{count_of(len(members), 'member')} {_LATE[state]}: {_names(members)}", hint
        else:
            yield from (_late(group, member) for member in members)
    if group.state == ASSIGNING and not late:
        yield (
            f"the target is that of epoch {group.assignment_epoch}: epoch {group.group_epoch} has none yet",
            None,
        )


_LATE = {
    MemberStatus.REVOKING: "have to give up partitions and have not confirmed it",
    MemberStatus.WAITING: "wait for partitions that their previous owners have not yet given up",
    MemberStatus.BEHIND: "have not confirmed their assignment",
}
"""What keeps members from their target assignment."""


def _deadlines(group: GroupDescription) -> str:
    ends = f"{command('doctor', group.group_id)} says which has begun, and since when"
    return f"its rebalance timeout bounds it, or its session where it sends no heartbeats: {ends}"


def _late(group: GroupDescription, member: Member) -> Pair:
    if member.state == MemberStatus.REVOKING:
        surplus = partitions_of(member.assignment) - partitions_of(member.target_assignment)
        what = some(surplus) if surplus else _copies(member.tasks, member.target_tasks)
        return f"{_who(member)} has to give up {what} and has not confirmed it", _deadlines(group)
    if member.state == MemberStatus.WAITING:
        missing = partitions_of(member.target_assignment) - partitions_of(member.assignment)
        what = some(missing) if missing else _copies(member.target_tasks, member.tasks)
        holders = [
            other
            for other in group.known_members
            if other is not member and not partitions_of(other.assignment).isdisjoint(missing)
        ]
        held = "not yet given up by the previous owner"
        if holders:
            held = f"not yet given up by {', '.join(map(_who, holders[:SHOWN]))}"
        elif len(group.known_members) == 1:
            held = "which no other member holds: due with one of its next heartbeats"
        return f"{_who(member)} waits for {what}, {held}", None
    epochs = f"epoch {member.member_epoch}, the assignment's is {group.assignment_epoch}"
    return f"{_who(member)} has not confirmed its assignment ({epochs})", None


def _who(member: Member) -> str:
    """Return a member with its client and host: a member id alone does not identify a process."""
    client = f"client {member.client_id}" if member.client_id else ""
    host = f"on {member.host}" if member.host else ""
    return f"{member.name} ({' '.join(filter(None, (client, host)))})" if client or host else member.name


def _copies(of: Tasks | None, without: Tasks | None) -> str:
    """Return the standby and warm-up tasks that only one of the two has."""
    if of is None or without is None:
        return "partitions of topics that are not known"
    named = []
    for role in ("standby", "warmup"):
        others = {entry.subtopology_id: entry.partitions for entry in getattr(without, role)}
        for entry in getattr(of, role):
            own = (n for n in entry.partitions if n not in others.get(entry.subtopology_id, ()))
            named += [f"{role} {entry.subtopology_id}:{number}" for number in own]
    return f"tasks {', '.join(named)}" if named else "tasks of a topology that is not known"


def _rebalancing(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if group.type == CLASSIC and group.state in REBALANCING:
        waits = "members to rejoin" if group.state == PREPARING else "the leader's assignment"
        hint = f"{command('doctor', group.group_id)} names the members it waits for, and since when"
        yield f"{group.state}: the coordinator waits for {waits}; nothing is consumed until then", hint


def _left(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    left = [member for member in group.known_members if member.state == MemberStatus.LEFT]
    if not left:
        return
    owned = (partitions_of(m.assignment) | partitions_of(m.target_assignment) for m in left)
    held = frozenset().union(*owned)
    wait = f"{some(held)} {'waits' if len(held) == 1 else 'wait'}"
    many, them = (True, "them") if len(left) > 1 else (False, "it")
    away = "--left-only" if many else f"--instance-id {list_item(left[0].name)}"
    remove = command("remove-members", group.group_id, options=away)
    # No request removes a member of a streams group.
    other = "wait for its session to end" if group.type == STREAMS else remove
    who = count_of(len(left), "member") if many else left[0].name
    named = f": {_names(left)}" if many else ""
    yield (
        f"{who} shut down without leaving for good: {wait} for {them}{named}",
        f"bring {them} back, or: {other}",
    )


def _unassigned(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if not group.known_members:
        return
    free = {
        row.place
        for row in group.notable
        if row.status is not None and (row.status.name, row.status.weight) == (PartitionStatus.UNREAD, ERROR)
    } | _without_owner(group, topics)
    if free:
        hint = (
            "clients notice new partitions after metadata.max.age.ms, 5 minutes by default; the restart of a "
            "member makes the leader refresh at once. An assignor of your own may leave them out"
        )
        if group.state == ASSIGNING:
            hint = f"only a member that joins changes that: {command('doctor', group.group_id)} says why"
        are = "is" if len(free) == 1 else "are"
        yield f"{some(free)} {are} assigned to no member although the group is {group.state}", hint


def _without_owner(group: GroupDescription, topics: PartitionCounts) -> set[TopicPartition]:
    """Return what members of a stable group subscribe to and none owns, whether records wait or not."""
    # Whether the owners are known.
    known = _subscriptions_known(group) and (
        group.members is not None and all(m.assignment is not None for m in group.members)
    )
    if group.type == SHARE or group.state != STABLE or not known:
        return set()
    held = frozenset().union(
        *(partitions_of(m.assignment) | partitions_of(m.target_assignment) for m in group.known_members)
    )
    numbers = {topic: range(topics.get(topic) or 0) for topic in subscribed(group)}
    return {TopicPartition(topic, n) for topic, those in numbers.items() for n in those} - held


def _spare(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    """Yield members with no partitions, or with less than half as many as one of the same subscription."""
    if group.type == SHARE or group.state != STABLE:
        return
    registration = group.registration
    meant = {*(registration.held or ()), *(registration.standby or ())} if registration else set()
    there = [member for member in group.known_members if member.name not in meant]
    idle = [member for member in there if member.assignment == () and not member.target_assignment]
    read = {topic for member in idle for topic in member.subscribed_topics or ()}
    alike = group.type != STREAMS and len({member.subscribed_topics for member in there}) == 1
    owned = {
        m.name: sum(len(a.partitions) for a in m.assignment or () if alike or a.topic in read) for m in there
    }
    most = max(owned, key=lambda name: owned[name], default="")
    few = idle or [member for member in there if alike and owned[member.name] * 2 < owned[most]]
    if not few:
        return
    have = "no partitions" if idle else "less than half of the most partitions"
    who = f"{len(few)} of {count_of(len(group.known_members), 'member')} have {have}: {_names(few)}"
    if idle and (group.assignor != RANGE or owned[most] < 2):
        yield who, None
        return
    other = COOPERATIVE_STICKY if group.type == CLASSIC else "uniform"
    range_only = (
        f"{RANGE} assigns each topic by itself, from the first member on; {other} shares all partitions, "
        "and breaks joins of topics by partition"
    )
    yield f"{who}, and {most} has {owned[most]}", range_only if group.assignor == RANGE else None


def _shared_client_ids(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    counts = Counter(member.client_id for member in group.known_members)
    shared = {client_id: count for client_id, count in counts.items() if count > 1}
    hint = "distinct client.id settings distinguish them in quotas and broker logs"
    if len(shared) > SHOWN:
        ids = first_of([repr(client_id) for client_id in shared])
        yield (
            f"{len(shared)} client ids are shared by {count_of(sum(shared.values()), 'member')}: {ids}",
            hint,
        )
        return
    for client_id, count in shared.items():
        yield f"{count} members share the client id {client_id!r}", hint


def _mixed(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    static = [m for m in group.known_members if m.instance_id is not None]
    if static and len(static) < len(group.known_members):
        dynamic = [m for m in group.known_members if m.instance_id is None]
        yield (
            f"{len(static)} static and {count_of(len(dynamic), 'dynamic member')}: {_names(dynamic)} dynamic",
            None,
        )


def _not_ready(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if group.state != NOT_READY:
        return
    missing = [
        f"{role} {topic} (subtopology {part.subtopology_id})"
        for part in (group.topology.subtopologies if group.topology is not None else ())
        for role, topic in part.by_role
        if topic in topics and topics[topic] is None
    ]
    if missing:
        hint = "create the source topics; brokers create the internal ones at the next heartbeat of a member"
        yield f"no task is assigned, these topics are missing: {first_of(missing)}", hint
    else:
        # KIP-1071: only a heartbeat's status names them, and only members receive it.
        hint = "the members' logs say which topics are missing or wrongly partitioned"
        yield "no task is assigned, although no topic of the topology is known to be missing", hint


def _held_back(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    delays = [
        m.connect.assignment.delay_ms for m in group.known_members if m.connect and m.connect.assignment
    ]
    if (longest := max(delays, default=0)) > 0:
        held = f"the leader holds them back for up to {longest / 1000:g} s, in case the workers return"
        shown = command("replay-log", group.group_id)
        yield (
            f"connectors and tasks of workers that left run nowhere: {held}",
            f"start the workers again, or wait; {shown} shows who left with what",
        )


def _task_states(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    workers = [m.connect for m in group.known_members if m.connect is not None]
    if workers:
        yield (
            "states of connectors and tasks are not seen: a failed task looks as one that runs",
            f"ask Connect itself: {workers[0].url.rstrip('/')}/connectors?expand=status",
        )


def _deliveries(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if group.type == SHARE:
        yield (
            "which records are delivered, locked, released or given up is in no answer of a broker",
            f"{command('replay-log', group.group_id)} shows those released or given up, but no locks",
        )


def _without_readers(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    waiting = (group.lag_at_least or 0) - group.unreadable_lag
    # Whether any of these offsets holds a record was not seen.
    unseen = sum(
        (row.lag or 0) - (row.unreadable or 0)
        for row in group.notable
        if row.status is not None and row.status.name == PartitionStatus.UNKNOWN
    )
    waiting -= unseen
    if group.state == EMPTY and waiting > 0:
        least = "" if group.total_lag is not None and not unseen else "at least "
        wait = "waits" if waiting == 1 else "wait"
        yield (
            f"{least}{count_of(waiting, 'record')} {wait}, and the group has no members",
            "start its consumers",
        )


def _upgrading(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    classic = [m for m in group.known_members if m.protocol == CLASSIC]
    if group.type == CONSUMER and classic:
        yield (
            (
                f"{len(classic)} of {count_of(len(group.known_members), 'member')} speak the classic "
                f"protocol: {_names(classic)}"
            ),
            f"to follow it, or on the way back downgrade watch: {command('upgrade watch', group.group_id)}",
        )


def _applications(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    """Yield members whose topics no other member reads: they share a group id and nothing else."""
    if not _subscriptions_known(group) or group.type not in (CLASSIC, CONSUMER, SHARE):
        return
    apart: list[tuple[set[str], list[Member]]] = []
    for member in group.known_members:
        names, members = set(member.subscribed_topics or ()), [member]
        for one in [pair for pair in apart if pair[0] & names]:
            apart.remove(one)
            names |= one[0]
            members += one[1]
        apart.append((names, members))
    if len(apart) > 1:
        said = [f"{_names(members)} {' '.join(sorted(names))}" for names, members in apart]
        hint = "give each application a group id of its own: a rebalance of one stops the others"
        yield (
            f"{len(apart)} sets of members share no topic: {'; '.join(said)}",
            hint,
        )


def _user_data(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    carrying = [m for m in group.known_members if m.user_data_bytes]
    # Kafka Streams always carries user data, and does not move to the consumer protocol.
    if group.type == CLASSIC and group.assignor != STREAM_ASSIGNOR and carrying:
        sizes = ", ".join(f"{m.user_data_bytes} B" for m in carrying[:SHOWN])
        yield (
            (
                f"{len(carrying)} of {count_of(len(group.known_members), 'assignment')} carry user data "
                f"({sizes})"
            ),
            command("upgrade plan", group.group_id),
        )


def beyond_end(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    """Yield the partitions whose committed offset lies beyond the end of their log."""
    # Of a commit that is known in a log whose end is known there is a lag, unless it is none of that log.
    rows = [
        row
        for row in group.notable
        if row.lag is None
        and row.commit_known
        and row.committed_offset is not None
        and row.log_end_offset is not None
    ]
    # Rows of ZooKeeper have no status.
    beyond = {row.place: row.status.why if row.status is not None else row.reason for row in rows}
    if beyond:
        reset = command("reset-offsets", group.group_id, options=f"{scope_text(beyond)} --to-earliest")
        hint = f"the log may hold records that were never read; once the group is empty: {reset}"
        if any((row.committed_offset or 0) <= (row.log_end_offset or 0) for row in rows):
            hint += ", or --to-offset with the offset where it was cut"
        said = [f"{partition}: {why}" for partition, why in beyond.items()]
        every = f"{some(beyond)}, committed beyond their ends: " if len(said) > SHOWN else ""
        yield every + first_of(said, SHOWN, "; "), hint


def _gone(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    gone = [
        row.place
        for row in group.notable
        # A topic that was not looked up is not known to be gone; one that does not exist is gone in whole.
        if row.lag is None
        and row.partition >= (topics.get(row.topic, row.partition + 1) or 0)
        and row.committed_offset is not None
    ]
    if gone:
        names = sorted({p.topic for p in gone})
        hint = command("offsets delete", group.group_id, options=_topic_options(names))
        do = "does" if len(gone) == 1 else "do"
        yield f"offsets are committed for {some(gone)}, which {do} not exist", hint


def _missing_topics(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if group.state == NOT_READY:
        return  # KG108 reports them, and the internal ones
    missing = sorted(t for t in subscribed(group) if t in topics and topics[t] is None)
    if missing:
        hint = "create them (consumers refresh every metadata.max.age.ms), or correct the subscription"
        yield f"subscribed topics that do not exist: {first_of(missing, SHOWN, ' ')}", hint


def _expiring(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if group.state != EMPTY or group.type == SHARE:
        return
    if committed := group.committed_count:
        yield (
            f"no members, {count_of(committed, 'committed offset')}: kept for offsets.retention.minutes",
            f"{command('offsets export', group.group_id)} keeps a copy",
        )


def _unsubscribed(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    if not group.known_members or not _subscriptions_known(group):
        return
    read = subscribed(group)
    if {partition.topic for partition in group.places} <= read:
        return
    stale = [row for row in group.offsets if row.committed_offset is not None and row.topic not in read]
    if stale:
        names = sorted({row.topic for row in stale})
        waiting = sum(row.work or 0 for row in stale)
        wait = f", and {count_of(waiting, 'record')} wait there" if waiting else ""
        hint = (
            "they expire offsets.retention.minutes after the last commit, unless a reader of them comes back"
        )
        named = first_of(names, SHOWN, " ")
        yield f"offsets are committed for topics that no member subscribes to{wait}: {named}", hint


def _uncommitted(group: GroupDescription, topics: PartitionCounts) -> Iterator[Pair]:
    bare = [
        row.place
        for row in group.notable
        if row.lag is None
        and row.committed_offset is None
        and row.member_id is not None
        and row.log_end_offset
        # Whether anything of it can be read is seen, or not judged.
        and (row.status is None or row.status.unseen is None or row.status.unseen.look != LOOK)
    ]
    if bare:
        have = "has" if len(bare) == 1 else "have"
        yield (
            f"{some(bare)} {have} records, a reader, and no committed offset",
            "auto.offset.reset decides where the next owner starts",
        )


_CHECKS: dict[str, Callable[[GroupDescription, PartitionCounts], Iterator[Pair]]] = {
    "KG101": _behind,
    "KG102": _rebalancing,
    "KG103": _left,
    "KG104": _unassigned,
    "KG105": _spare,
    "KG106": _shared_client_ids,
    "KG107": _mixed,
    "KG108": _not_ready,
    "KG109": _held_back,
    "KG116": _task_states,
    "KG118": _deliveries,
    "KG119": _without_readers,
    "KG121": _applications,
    "KG201": _upgrading,
    "KG211": _user_data,
    "KG301": beyond_end,
    "KG302": _gone,
    "KG303": _missing_topics,
    "KG304": _expiring,
    "KG305": _unsubscribed,
    "KG306": _uncommitted,
}


def _topic_options(topics: Iterable[str]) -> str:
    return " ".join(f"--topic {word(topic)}" for topic in topics)


def _subscriptions_known(group: GroupDescription) -> bool:
    """Return whether every member's topics are known; a regex or another protocol type hides them."""
    members = group.known_members
    return bool(members) and all(m.subscribed_topics and not m.subscribed_regex for m in members)


def subscribed(group: GroupDescription) -> set[str]:
    """Return the topics that members are known to subscribe to."""
    return {topic for member in group.known_members for topic in member.subscribed_topics or ()}


def some(partitions: Iterable[TopicPartition]) -> str:
    """Return a few partitions by name, and more of them by topic and range."""
    ordered = sorted(partitions)
    if len(ordered) > SHOWN:
        spans = [
            (topic, span)
            for topic, numbers in numbers_by_topic(ordered).items()
            for span in ranges(numbers).split(",")
        ]
        shown = [f"{topic}:{','.join(those)}" for topic, those in grouped(spans[:SPANS]).items()]
        more = f" and {count_of(len(spans) - SPANS, 'more range')}" if len(spans) > SPANS else ""
        return f"{count_of(len(ordered), 'partition')} {' '.join(shown)}{more}"
    noun = "partition" if len(ordered) == 1 else "partitions"
    return f"{noun} {' '.join(map(str, ordered))}" if ordered else "no partitions"


def scope_text(partitions: Iterable[TopicPartition]) -> str:
    """Return the options of `reset-offsets` that name exactly these partitions."""
    by_topic = numbers_by_topic(partitions).items()
    return " ".join(f"--topic {word(f'{topic}:{ranges(numbers)}')}" for topic, numbers in by_topic)


def _names(members: Sequence[Member]) -> str:
    return first_of([member.called for member in members])
