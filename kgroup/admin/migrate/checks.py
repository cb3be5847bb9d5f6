"""What a broker checks before and during an upgrade to the consumer protocol, predicted for one group.

Order and conditions are those of Kafka 4.3.1's coordinator: protocol served, migration policy, protocol type,
size, embedded bytes, user data. The checks after those decide nothing there but change the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kgroup.admin.codes import UNSTORED
from kgroup.admin.migrate.client_kinds import KAFKA_STREAMS
from kgroup.admin.migrate.consequences import consequences
from kgroup.admin.migrate.models import (
    ALREADY,
    BLOCK,
    BLOCKED,
    OK,
    POLICIES,
    POLICY,
    READY,
    SHOWN,
    UNKNOWN,
    UPGRADE,
    WARN,
    Check,
    Evidence,
    MemberEvidence,
    MigrationPlan,
    Serving,
    words,
)
from kgroup.admin.migrate.patterns import check_patterns
from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    COOPERATIVE_STICKY,
    EMPTY,
    STABLE,
    STREAM_ASSIGNOR,
    ItemError,
    Member,
)
from kgroup.admin.read.visibility import RIGHTS
from kgroup.admin.shell import command
from kgroup.domain import Document, count_of, first_of
from kgroup.protocol.embedded import connect
from kgroup.protocol.embedded.member import CONNECT, application_of
from kgroup.protocol.releases import Change, at_least
from kgroup.protocol.subscription import PROTOCOL_TYPE

PROTOCOLS = "group.coordinator.rebalance.protocols"
CONSUMER_MAX_SIZE = "group.consumer.max.size"
REFUSAL = 'The broker refuses the first consumer-protocol member with GROUP_ID_NOT_FOUND ("does not exist").'
STRANDED = (
    "The group stays a consumer group, and with classic members only there is no new target: what the "
    "last consumer-protocol members leave has no owner until a member joins."
)
_NEEDS_CONFIGS = "kgroup needs DESCRIBE_CONFIGS on the cluster"


def plan_upgrade(gathered: Evidence, patterns: Sequence[str] = ()) -> MigrationPlan:
    """Return the verdict on rolling clients to the consumer protocol, one stopped before the next starts.

    `patterns` are the clients' subscription patterns, which no broker reports.
    """
    group = gathered.group
    if group.type == CONSUMER:
        return _converted(gathered, patterns)
    checks = list(served(gathered))
    if foreign := _foreign(gathered):
        # A group of another type gets no result meant for consumers.
        return verdict_of(gathered, UPGRADE, [*checks, foreign])
    if group.state == EMPTY:
        checks.append(Check("state", OK, "the group is empty: it converts offline, whatever the policy"))
        evidence = {"kind": gathered.kind.name, "because": gathered.kind.because}
        if gathered.kind.name is None:
            message = f"consumers or Kafka Streams? {gathered.kind.because}"
            hint = "a Streams application could not join it any more; if consumers use it: --accept-unknown"
            checks.append(Check("used_by", UNKNOWN, message, hint, evidence, gathered.kind.code))
        else:
            message = f"{gathered.kind.name}: {gathered.kind.because}"
            checks.append(Check("used_by", OK, message, None, evidence))
    else:
        checks += _online(gathered)
    checks += check_patterns(patterns, gathered.topic_names, UPGRADE)
    checks += consequences(gathered)
    return verdict_of(gathered, UPGRADE, checks)


def _online(gathered: Evidence) -> Iterator[Check]:
    yield policy(gathered, UPGRADE)
    evidence = {"protocol_type": gathered.group.protocol_type}
    yield Check("protocol_type", OK, "the embedded protocol is consumer", None, evidence)
    yield room(gathered, gathered.members, gathered.members)
    yield _embedded(gathered)
    carriers = {member.name: member.user_data_bytes for member in gathered.members if member.user_data_bytes}
    data: Document = {"bytes": carriers, "assignor": gathered.group.assignor}
    if carriers:
        # No other check predicts this: brokers refuse to lose an assignment's user data.
        amounts = ", ".join(f"{size} B" for size in list(carriers.values())[:SHOWN])
        message = (
            f"{len(carriers)} of {count_of(len(gathered.members), 'assignment')} carry user data "
            f"({amounts}), assignor {gathered.group.assignor}. {REFUSAL}"
        )
        hint = (
            "roll to range or roundrobin first (a full restart: neither mixes with cooperative-sticky), or "
            "stop all members, let the group go Empty and start them with group.protocol=consumer"
        )
        yield Check("assignment_user_data", BLOCK, message, hint, data)
    else:
        yield Check("assignment_user_data", OK, "no assignment carries user data", None, data)
    yield from _user_data_to_come(gathered)
    if gathered.group.state != STABLE:
        yield Check(
            "state",
            WARN,
            f"the group is {gathered.group.state}: subscriptions are not shown, and all this may change",
            f"wait until it is stable, then again: {command('upgrade plan', gathered.group.group_id)}",
            {"state": gathered.group.state},
        )


def _converted(gathered: Evidence, patterns: Sequence[str]) -> MigrationPlan:
    """Return the plan of a consumer group: done, or under way while some members are still classic."""
    group = gathered.group
    classic = [member.name for member in group.known_members if member.protocol == CLASSIC]
    evidence: Document = {"members": len(group.known_members), "classic": classic}
    if not gathered.member_types:
        message = "it is a consumer group; unknown which members still speak the classic protocol: "
        check = Check(
            "type",
            UNKNOWN,
            f"{message}broker {gathered.broker} does not report it",
            None,
            evidence | {"classic": None},
        )
        return verdict_of(gathered, UPGRADE, [check])
    if not classic:
        done = Check(
            "type", OK, "it is a consumer group, and every member speaks its protocol", None, evidence
        )
        return MigrationPlan(group.group_id, UPGRADE, group.type, group.state, ALREADY, (done,))
    count = f"{len(classic)} of {count_of(len(group.known_members), 'member')}"
    who = first_of([member.called for member in group.known_members if member.protocol == CLASSIC])
    said = f"the group is converted; {count} still speak the classic protocol: {who}"
    checks = [Check("type", OK, said, None, evidence)]
    checks += served(gathered)
    checks.append(_policy_half_way(gathered))
    checks.append(room(gathered, group.known_members, gathered.remaining))
    checks += check_patterns(patterns, gathered.topic_names, UPGRADE)
    checks += consequences(gathered)
    return verdict_of(gathered, UPGRADE, checks)


def _policy_half_way(gathered: Evidence) -> Check:
    """Return what the migration policy does to a group that is converted while classic members stay."""
    check = policy(gathered, UPGRADE)
    if check.status != BLOCK:
        return check
    value = str((gathered.settings or {}).get(POLICY))
    if value.lower() == "disabled":
        refused = "classic members that rejoin, as each restart makes them, are refused with "
        message = f"{POLICY}={value} (broker {gathered.broker}): {refused}INCONSISTENT_GROUP_PROTOCOL"
        return replace(check, message=message)
    back = "when its last member of the consumer protocol leaves before, the group is classic and stays so"
    message = f"{POLICY}={value} (broker {gathered.broker}): {back}"
    return replace(check, status=WARN, message=message)


def _unstored(gathered: Evidence) -> Iterator[Check]:
    """Yield that the coordinator refuses every join, of either protocol, because it can store none."""
    why = gathered.unstored
    if isinstance(why, ItemError):
        message = f"whether the coordinator can store joins is unknown: {why.message}"
        yield Check("storage", UNKNOWN, message, why.hint, {}, why.code)
    elif why is not None:
        message = f"joins are answered COORDINATOR_NOT_AVAILABLE: {why[0]}"
        yield Check("storage", BLOCK, message, why[1], {"findings": [UNSTORED]})


def verdict_of(gathered: Evidence, direction: str, checks: Iterable[Check]) -> MigrationPlan:
    """Return blocked when a check blocks, else unknown when a deciding one is unknown, else ready."""
    made = (*_unstored(gathered), *checks)
    statuses = {check.status for check in made}
    verdict = BLOCKED if BLOCK in statuses else UNKNOWN if UNKNOWN in statuses else READY
    return MigrationPlan(
        gathered.group.group_id, direction, gathered.group.type, gathered.group.state, verdict, made
    )


def served(gathered: Evidence | Serving) -> Iterator[Check]:
    """Yield whether the coordinator accepts consumer-protocol members at all."""
    protocols = (gathered.settings or {}).get(PROTOCOLS)
    evidence = {
        "broker": gathered.broker,
        "consumer_group_heartbeat": gathered.serves_heartbeat,
        "group_version": gathered.group_version,
        PROTOCOLS: protocols,
    }
    code, refused = "consumer_protocol", "consumer-protocol members are answered UNSUPPORTED_VERSION"
    if not gathered.serves_heartbeat:
        lacks = "does not serve ConsumerGroupHeartbeat (KIP-848 is in Kafka 4.0 and later)"
        why = f"broker {gathered.broker} {lacks}"
        yield Check(code, BLOCK, why, "upgrade the brokers first", evidence)
    elif gathered.preview:
        yield _previewed(gathered, protocols, evidence)
    elif gathered.group_version == 0:
        hint = "kafka-features --bootstrap-server … upgrade --feature group.version=1"
        yield Check(code, BLOCK, f"the feature group.version is 0: {refused}", hint, evidence)
    elif protocols is not None and CONSUMER not in words(protocols):
        hint = f"add consumer to {PROTOCOLS} on every broker and restart them"
        yield Check(code, BLOCK, f"{PROTOCOLS}={protocols}: {refused}", hint, evidence)
    elif gathered.group_version is None:
        said = "ConsumerGroupHeartbeat is served; the level of group.version is unknown"
        yield Check(code, UNKNOWN, said, None, evidence)
    else:
        message = f"served by broker {gathered.broker}, group.version={gathered.group_version}"
        yield Check(code, OK, message, None, evidence)


def _previewed(gathered: Evidence | Serving, protocols: str | None, evidence: Mapping[str, object]) -> Check:
    """Return whether a broker of Kafka 3.7 to 3.9 accepts them: a setting decides, it has no feature."""
    code, early = (
        "consumer_protocol",
        "Kafka 3.7 to 3.9 have the protocol in early access, for KRaft clusters",
    )
    hint = f"upgrade the brokers to Kafka 4.0; to try it, set {PROTOCOLS}=classic,consumer and restart them"
    if protocols is None:
        return Check(
            code, UNKNOWN, f"{early}; {PROTOCOLS} of broker {gathered.broker} is unknown", hint, evidence
        )
    if CONSUMER not in words(protocols):
        return Check(code, BLOCK, f"{PROTOCOLS}={protocols}; {early}", hint, evidence)
    return Check(
        code, WARN, f"served by broker {gathered.broker}, not for production: {early}", hint, evidence
    )


def _unread_hint(gathered: Evidence) -> str | None:
    """Return what to do about an unknown setting; rights help only where they are missing."""
    if gathered.settings is not None:
        return "upgrade the brokers first: Kafka 4.0 and later have it"
    return _NEEDS_CONFIGS if gathered.settings_code in RIGHTS else None


def policy(gathered: Evidence, direction: str) -> Check:
    """Return whether the cluster's migration policy lets a live group change over."""
    value = (gathered.settings or {}).get(POLICY)
    evidence = {POLICY: value, "broker": gathered.broker}
    code = "migration_policy"
    if value is None:
        why = gathered.settings_error or "the broker does not have this setting"
        return Check(code, UNKNOWN, why, _unread_hint(gathered), evidence, gathered.settings_code)
    if value.lower() in POLICIES[direction]:
        return Check(code, OK, f"{POLICY}={value} (broker {gathered.broker})", None, evidence)
    message = f"{POLICY}={value} (broker {gathered.broker}) forbids an online {direction}."
    message += f" {REFUSAL if direction == UPGRADE else STRANDED}"
    hint = f"set it to bidirectional or {direction}, or stop all members and convert the empty group: "
    return Check(
        code, BLOCK, message, hint + command(f"{direction} execute", gathered.group.group_id), evidence
    )


def _foreign(gathered: Evidence) -> Check | None:
    """Return the only check of a group that is not a consumer group: it stays what it is."""
    kind = gathered.group.protocol_type
    evidence = {"protocol_type": kind, "kind": gathered.kind.name, "because": gathered.kind.because}
    if kind not in ("", CONSUMER):
        whose = "this is not a group of consumers"
        if (application := gathered.group.application) is not None:
            who = (
                "workers of Kafka Connect" if application.kind == CONNECT else "instances of Schema Registry"
            )
            whose = f"{who} share this group, and they have no other protocol than the classic one"
        message = f"the protocol type is {kind!r}, not consumer: {whose}."
        message += "" if gathered.group.state == EMPTY else f" {REFUSAL}"
        hint = "leave this group as it is"
        if kind == connect.PROTOCOL_TYPE:
            hint += (
                ". The consumers of its sinks are in groups of their own (connect-CONNECTOR by default) and "
            )
            hint += "move with consumer.group.protocol=consumer in the workers' settings"
        return Check("protocol_type", BLOCK, message, hint, evidence)
    if gathered.kind.name != KAFKA_STREAMS:
        return None
    named = application_of(gathered.group.group_id, CONSUMER, STREAM_ASSIGNOR)
    query = named.query_id if named else None
    whose = f"Kafka Streams, of the ksqlDB query {query}" if query else "Kafka Streams"
    message = f"this is a group of {whose}: {gathered.kind.because}. As a consumer group the application "
    message += "could not join it any more"
    hint = (
        "leave it; Streams moves with group.protocol=streams (KIP-1071): stop all of its members, wait until "
    )
    hint += "the group is empty (kgroup wait --for empty), start them so"
    return Check("kafka_streams", BLOCK, message, hint, evidence)


def room(
    gathered: Evidence,
    members: Sequence[MemberEvidence | Member],
    left: Sequence[MemberEvidence | Member],
) -> Check:
    """Return whether each successor of those left fits in: static ones first, which keep their places."""
    count, most = len(members), gathered.number(CONSUMER_MAX_SIZE)
    evidence = {"members": count, CONSUMER_MAX_SIZE: most}
    if most is None:
        why = gathered.settings_error or "the broker does not report it"
        message = f"{CONSUMER_MAX_SIZE}: {why}"
        return Check("size", UNKNOWN, message, _unread_hint(gathered), evidence, gathered.settings_code)
    static = any(member.instance_id is not None for member in left)
    dynamic = any(member.instance_id is None for member in left)
    there = count if static else count - 1
    full, hint = f"{count_of(count, 'member')}, {CONSUMER_MAX_SIZE}={most}", f"raise {CONSUMER_MAX_SIZE}"
    if gathered.group.type == CLASSIC and there > most:
        return Check("size", BLOCK, f"{full}. {REFUSAL}", f"{hint} or stop members", evidence)
    returns = at_least(gathered.settings or ()).has(Change.RETURNS_IN_FULL_GROUPS)
    if static and count >= most and not returns:
        message = (
            f"{full}: a static member keeps its place while it is restarted, and its successor is refused "
            "with GROUP_MAX_SIZE_REACHED"
        )
        hint = f"{hint}, or remove each first: kgroup remove-members"
        return Check("size", BLOCK, message, hint, evidence)
    if dynamic and count > most:
        message = f"{full}: the successor of a dynamic member is refused with GROUP_MAX_SIZE_REACHED"
        return Check("size", BLOCK, message, f"{hint} or stop members", evidence)
    if dynamic and count == most:
        message = f"the group is full ({full}): stop each dynamic member before its successor starts"
        return Check("size", WARN, message, None, evidence)
    return Check("size", OK, full, None, evidence)


def _embedded(gathered: Evidence) -> Check:
    faulty = {member.name: list(member.faults) for member in gathered.members if member.faults}
    shown = [member for member in gathered.members if member.subscription is not None]
    versions = sorted(
        {member.subscription_version for member in shown if member.subscription_version is not None}
    )
    given = sorted({s.assignment_version for s in gathered.members if s.assignment_version is not None})
    evidence = {"subscription_versions": versions, "assignment_versions": given, "faults": faulty}
    count = f"{len(shown)}/{count_of(len(gathered.members), 'member')}"
    if faulty and gathered.group.protocol_type == PROTOCOL_TYPE:
        message = f"the embedded bytes of {first_of(list(faulty))} do not parse. {REFUSAL}"
        hint = "restart these members with a client that writes ConsumerProtocol, or convert offline"
        return Check("embedded_protocol", BLOCK, message, hint, evidence)
    if len(shown) < len(gathered.members):
        stable = gathered.group.state == STABLE
        why = "this broker does not report them" if stable else "brokers show those of stable groups only"
        message = f"subscriptions are shown for {count}: {why}"
        return Check("embedded_protocol", UNKNOWN, message, None, evidence)
    span = "-".join(f"v{version}" for version in sorted({*versions[:1], *versions[-1:]}))
    return Check("embedded_protocol", OK, f"consumer, subscriptions {span} parse for {count}", None, evidence)


def _user_data_to_come(gathered: Evidence) -> Iterator[Check]:
    """Yield librdkafka's cooperative-sticky: no user data in the first generation, some from the next."""
    # librdkafka's user data is v3 and empty, not null; Java writes 4 bytes, kafka-python an older v1.
    suspects = [
        member
        for member in gathered.members
        if member.subscription is not None
        and member.subscription_version == 3
        and member.subscription.user_data == b""
        and not member.subscription.owned
    ]
    if gathered.group.assignor != COOPERATIVE_STICKY or not suspects or len(gathered.members) < 2:
        return
    if any(member.user_data_bytes for member in gathered.members):
        return
    code, static = "user_data_to_come", [member.name for member in gathered.members if member.instance_id]
    evidence = {"members": [member.name for member in suspects], "static": static}
    cause = "these subscriptions are written as librdkafka does, whose cooperative-sticky adds user data to "
    cause += "assignments with the next rebalance"
    if static:
        hint = "roll the static members first: their successors convert the group without a rebalance"
        yield Check(
            code, WARN, f"{cause}; any rebalance before the first successor joins blocks", hint, evidence
        )
    else:
        hint = "start the first successor before its predecessor is stopped, or convert offline"
        yield Check(code, BLOCK, f"{cause}: stopping the first member is one. {REFUSAL}", hint, evidence)
