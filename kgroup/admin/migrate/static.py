"""From dynamic to static members (KIP-345, Upgrade process): missing ids, and how long restarts take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.checks import verdict_of
from kgroup.admin.migrate.client_kinds import KAFKA_STREAMS
from kgroup.admin.migrate.consequences import session_ahead
from kgroup.admin.migrate.evidence import gather, logged_in
from kgroup.admin.migrate.models import (
    ALREADY,
    BLOCK,
    INFO,
    OK,
    STATIC,
    UNKNOWN,
    WARN,
    Check,
    Evidence,
    Logged,
    MigrationPlan,
)
from kgroup.admin.models import CLASSIC, CONSUMER, EMPTY
from kgroup.admin.settings import number_of
from kgroup.admin.shell import command
from kgroup.domain import count_of, first_of

if TYPE_CHECKING:
    from kgroup.history.fold.folding import Holdings

JOIN_GROUP, INSTANCE_IDS_SINCE = 11, 5
MOST_MS = 30 * 60_000
"""Longer than any classic session: no restart, but fewer members from then on."""
DEFAULT_MS = 45_000
LIMITS = {CLASSIC: "group.max.session.timeout.ms", CONSUMER: "group.consumer.max.session.timeout.ms"}


def plan_static(cluster: ClusterView, group_id: str, *, read_log: bool = False) -> MigrationPlan:
    """Return the steps that give every member an instance id; changes nothing.

    `read_log` reads restart times, and the members' sessions, from the group's records. Raise BrokerRefused
    when the group cannot be described, SafetyRefused for another type.
    """
    gathered, restarts = gather(cluster, group_id), None
    if read_log:
        logged, restarts = recorded(cluster, group_id)
        gathered = replace(gathered, logged=logged)
    joins = cluster.transport.versions(gathered.broker, JOIN_GROUP)
    serves = gathered.group.type == CONSUMER or (joins is not None and joins[-1] >= INSTANCE_IDS_SINCE)
    return plan_of_static(gathered, serves, restarts)


def plan_of_static(gathered: Evidence, serves: bool, restarts: Sequence[int] | None) -> MigrationPlan:
    """Return the verdict on what was gathered; `restarts` in ms, None if no record was read."""
    members, group = gathered.group.known_members, gathered.group
    if not serves:
        message = f"broker {gathered.broker} has no static members: they came with Kafka 2.3 (KIP-345)"
        old = Check("broker", BLOCK, message, "upgrade the brokers first", {"broker": gathered.broker})
        return verdict_of(gathered, STATIC, [old])
    if group.protocol_type not in ("", CONSUMER):
        message = (
            f"the protocol type is {group.protocol_type}: its members decide about static ids themselves"
        )
        foreign = Check("protocol_type", BLOCK, message, None, {"protocol_type": group.protocol_type})
        return verdict_of(gathered, STATIC, [foreign])
    if not all(member.instance_id_known for member in members):
        message = "this broker does not report instance ids (Kafka 2.4 and later do)"
        return verdict_of(gathered, STATIC, [Check("static_ids", UNKNOWN, message, None, {"dynamic": None})])
    dynamic = [member for member in members if member.instance_id is None]
    if members and not dynamic:
        message = f"all {count_of(len(members), 'member')} are static"
        done = (Check("static_ids", OK, message, None, {"dynamic": []}), _session_timeout(gathered, restarts))
        return MigrationPlan(group.group_id, STATIC, group.type, group.state, ALREADY, done)
    roll = Check(
        "roll",
        INFO,
        "static and dynamic members may be mixed: this last roll rebalances for each member that leaves and "
        "for its successor, as rolls do today. From the next one on, a restart within the session moves "
        "nothing",
        f"{command('wait', group.group_id, options='--for static')} ends when all have an id",
    )
    leaving = Check(
        "leaving",
        INFO,
        "a static member does not leave when it stops: after a scale-down its partitions have no owner until "
        "its session ends",
        f"{command('remove-members', group.group_id, options='--instance-id ID')} removes it at once",
    )
    checks = [_dynamic(gathered), _naming(gathered), _session_timeout(gathered, restarts), roll, leaving]
    return verdict_of(gathered, STATIC, checks)


def _dynamic(gathered: Evidence) -> Check:
    members = gathered.group.known_members
    if gathered.group.state == EMPTY or not members:
        message = "the group has no members now: nothing shows whether its clients set group.instance.id"
        return Check("static_ids", INFO, message, None, {"dynamic": None})
    dynamic = [m for m in members if m.instance_id is None]
    shown = [f"{m.client_id} on {m.host}" for m in dynamic]
    message = (
        f"without an instance id: {len(dynamic)} of {count_of(len(members), 'member')}: {first_of(shown)}"
    )
    rows = [{"member_id": m.member_id, "client_id": m.client_id, "host": m.host} for m in dynamic]
    hint = "set group.instance.id in each, and restart one after the other"
    return Check("static_ids", INFO, message, hint, {"dynamic": rows})


def _naming(gathered: Evidence) -> Check:
    """Return what makes a good id; several members of one host need a number besides its name."""
    dynamic = [member for member in gathered.group.known_members if member.instance_id is None]
    hosts = [member.host for member in dynamic]
    crowded = sorted({host for host in hosts if host is not None and hosts.count(host) > 1})
    message = "an id is one consumer's alone and the same after a restart: the pod name of a StatefulSet "
    message += (
        f"({gathered.group.group_id}-0), or the host's name; letters, digits, . _ - and at most 249 of them"
    )
    evidence = {"hosts_with_several": crowded}
    if gathered.kind.name == KAFKA_STREAMS:
        message += ". Kafka Streams adds the number of the thread to the id of the instance"
        return Check("instance_ids", INFO, message, None, evidence)
    hint = "never a random value: each start would leave a member behind for a whole session"
    if crowded:
        message += (
            f"; several consumers run on {first_of(crowded)}: add the number of the consumer in its process"
        )
        return Check("instance_ids", WARN, message, hint, evidence)
    return Check("instance_ids", INFO, message, hint, evidence)


def _session_timeout(gathered: Evidence, restarts: Sequence[int] | None) -> Check:
    limit = LIMITS[gathered.group.type]
    most = gathered.number(limit)
    group, timeouts = gathered.group, gathered.logged.session_timeouts if gathered.logged else {}
    ahead, members = number_of(session_ahead(gathered)), group.known_members
    # Those of the consumer protocol have the group's, classic ones each its own, in either type of group.
    each = [ahead if m.protocol == CONSUMER else timeouts.get(m.member_id) for m in members]
    if not members and group.type == CONSUMER:
        each = [ahead]
    known = {ms for ms in each if ms is not None}
    # The members' session timeouts in ms, ascending; None where some are unknown.
    now = sorted(known) if each and None not in each else None
    newer = command("config set", group.group_id, options="consumer.session.timeout.ms=MS --execute")
    protocols = {m.protocol for m in members} or {group.type}
    where = ", and ".join(
        text
        for protocol, text in ((CONSUMER, newer), (CLASSIC, "session.timeout.ms of the clients"))
        if protocol in protocols
    )
    evidence = {"restarts_ms": None if restarts is None else sorted(restarts), "members_ms": now, limit: most}
    if not restarts:
        why = "--read-log looks for them in the records" if restarts is None else "the records show none"
        message = f"unknown how long restarts take: {why}; the session has to be longer than one"
        return Check("session_timeout", INFO, message, where, evidence)
    longest = max(restarts)
    fits = max(DEFAULT_MS, -(-(longest * 3 // 2) // 5_000) * 5_000)
    seen = f"{count_of(len(restarts), 'restart')} in the records, the longest {longest / 1000:g} s"
    if most is None:
        message = f"{seen}: {fits / 1000:g} s fits; unknown whether the broker allows it ({limit})"
        return Check("session_timeout", WARN, message, where, evidence)
    if fits > most:
        message = f"{seen}: {fits / 1000:g} s would fit, and {limit} is {most / 1000:g} s"
        return Check("session_timeout", WARN, message, f"raise {limit}, or restart faster", evidence)
    message = f"{seen}: {fits / 1000:g} s fits, below {limit}={most}"
    if now is None:
        return Check("session_timeout", OK, f"{message}; unknown what the members use now", where, evidence)
    message += f"; the members use {', '.join(f'{ms / 1000:g} s' for ms in now)} now"
    return Check("session_timeout", WARN if now[0] < fits else OK, message, where, evidence)


def recorded(cluster: ClusterView, group_id: str) -> tuple[Logged | None, tuple[int, ...]]:
    """Return what the group's records show, and how long each restart in them took, in ms, oldest first.

    The log is read once; None for a group without records. A restart is the time from the record in which the
    group lost a member to the one in which it had as many again; records name no process, so two that overlap
    count as one. Raise DecodeError for a damaged log.
    """
    from kgroup.admin.read.history import whole_story
    from kgroup.history.fold.folding import Extras
    from kgroup.history.sources.live import LiveTopic

    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    [partition] = topic.by_partition([group_id])
    extras = Extras(keep_owners=True)
    fold = whole_story(topic.log(partition), [group_id], topic.topic_names, extras).folds[partition]
    state = fold.states.get(group_id)
    return None if state is None else logged_in(state), dips((fold.owners or {}).get(group_id, ()))


def dips(history: Sequence[Holdings]) -> tuple[int, ...]:
    """Return the times in ms for which the group had fewer members than before, if it had as many again."""
    dips_ms: list[int] = []
    full, since_ms = 0, 0
    before = 0
    for held in history:
        # kgroup's member, which converts an empty group, subscribes to nothing and does not count.
        count = sum(
            (member.protocol == CLASSIC and member.joined_with is None)
            or bool(member.topics)
            or member.regex is not None
            for member in held.members
        )
        if full and count >= full:
            if held.timestamp_ms - since_ms <= MOST_MS:
                dips_ms.append(held.timestamp_ms - since_ms)
            full = 0
        elif not full and count < before:
            full, since_ms = before, held.timestamp_ms
        elif full and held.timestamp_ms - since_ms > MOST_MS:
            full = 0
        before = count
    return tuple(dips_ms)
