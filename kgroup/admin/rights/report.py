"""The commands a principal can use on a group, the rights it lacks for the others, and ACLs to ask for."""

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, EMPTY, SHARE, GroupDescription
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.lag import readers_known
from kgroup.admin.read.members import partitions_of
from kgroup.admin.read.visibility import sees_every_topic
from kgroup.admin.rights import needs as table
from kgroup.admin.rights.needs import COMMANDS, Needs
from kgroup.admin.rights.probes import Held
from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import KgroupError
from kgroup.security.rights import CLUSTER, EVERY, GROUP, TOPIC, TRANSACTIONAL_ID, Right

_FLAGS = {GROUP: "--group", TOPIC: "--topic", CLUSTER: "--cluster", TRANSACTIONAL_ID: "--transactional-id"}
PLACEHOLDER = "User:NAME"
"""The principal in an ACL where kgroup does not know it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A right that a command needs, and whether the principal has it; None where unknown."""

    right: Right
    held: bool | None


@dataclass(frozen=True, slots=True)
class Ability:
    """A command, and whether the principal can use it as asked; None where unknown.

    `missing` are the rights it needs and does not have, `unknown` those that no broker reports.
    """

    command: str
    usable: bool | None
    needs: tuple[Wanted, ...]
    missing: tuple[Right, ...]
    unknown: tuple[Right, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The subject: a group or every one, one that a clone makes, a topic that is named."""

    group_id: str | None = None
    new_group: str | None = None
    topic: str | None = None


def abilities(cluster: ClusterView, commands: Iterable[str], asked: Asked) -> tuple[Ability, ...]:
    """Return what this principal can do, command by command, in the order given; changes nothing.

    Where it may see the group, the topics it reads are named; else rights to every topic are checked.
    """
    names, without = _names(cluster, asked)
    rights_of = {}
    for name in commands:
        needs = COMMANDS[name]
        applying = tuple(need for need in needs.needs if need.when not in without)
        rights_of[name] = Needs(applying, needs.note).rights(names)
    held = Held(cluster)
    held.look_up(right for rights in rights_of.values() for right in rights)
    answers = []
    for name, rights in rights_of.items():
        has = {right: held.holds(right) for right in rights}
        missing = tuple(right for right in rights if held.usable(right) is False)
        unknown = tuple(right for right in rights if has[right] is None and right not in missing)
        usable = False if missing else None if unknown else True
        judged = tuple(Wanted(right, has[right]) for right in rights)
        answers.append(Ability(name, usable, judged, missing, unknown, COMMANDS[name].note))
    return tuple(answers)


def kafka_acls(rights: Iterable[Right], principal: str | None, where: str) -> tuple[str, ...]:
    """Return a line of kafka-acls for each right: the least that grants it to `principal`, on any host."""
    return tuple(
        shlex.join(
            [
                "kafka-acls",
                "--bootstrap-server",
                where,
                "--add",
                "--allow-principal",
                principal or PLACEHOLDER,
                "--operation",
                right.operation,
                _FLAGS[right.resource],
                *([right.name] if right.name else ()),
            ]
        )
        for right in rights
    )


def _names(cluster: ClusterView, asked: Asked) -> tuple[Mapping[str, Collection[str]], frozenset[str]]:
    """Return the names behind the table's stand-ins, and the conditions known not to hold."""
    topic = (asked.topic or EVERY,)
    names: dict[str, Collection[str]] = {
        table.THE_GROUP: (asked.group_id or EVERY,),
        table.NEW_GROUP: (asked.new_group or EVERY,),
        table.THE_TOPIC: topic,
        table.ITS_TOPICS: topic,
        table.COMMITTED_TOPICS: topic,
    }
    if asked.group_id is None:
        return names, frozenset()
    group, committed = _look(cluster, asked.group_id)
    if committed is not None and asked.topic is None:
        names[table.COMMITTED_TOPICS] = sorted({partition.topic for partition in committed}) or (EVERY,)
    if group is None:
        return names, frozenset()
    read: set[str] = set()
    # The topics the members read; none unless all members' topics are known.
    if readers_known(group):
        for member in group.known_members:
            read.update(partition.topic for partition in partitions_of(member.assignment))
            read.update(member.subscribed_topics or ())
    if read and asked.topic is None:
        names[table.ITS_TOPICS] = sorted(read)
        if committed is not None:
            names[table.COMMITTED_TOPICS] = sorted({partition.topic for partition in committed}.union(read))
    without = {
        table.WHEN_EMPTY: group.state != EMPTY or committed == frozenset(),
        table.WHEN_CONSUMER: group.state == EMPTY or group.type == CLASSIC,
        table.WHEN_EMPTY_OR_CONSUMER: group.state != EMPTY and group.type == CLASSIC,
        table.WHEN_LIVE: group.state == EMPTY,
        table.WHEN_SHARED: group.type != SHARE,
        table.WHEN_GIVEN_UP: group.type != SHARE,
        table.WHEN_LEFT: group.members is not None
        and all(m.state != MemberStatus.LEFT for m in group.members),
    }
    return names, frozenset(condition for condition, absent in without.items() if absent)


def _look(
    cluster: ClusterView, group_id: str
) -> tuple[GroupDescription | None, frozenset[TopicPartition] | None]:
    """Return the group, and all it has committed, each None where it cannot be seen."""
    from kgroup.admin.read.share_offsets import stored_offsets

    group = groups_only(cluster, [group_id])[group_id]
    if isinstance(group, KgroupError):
        return None, None
    share = [group_id] if group.type == SHARE else ()
    stored = stored_offsets(cluster, [group_id], share)[0][group_id]
    if isinstance(stored, KgroupError) or not sees_every_topic(cluster):
        return group, None
    return group, frozenset(stored.places)
