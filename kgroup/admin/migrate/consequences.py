"""What an upgrade changes for a group without deciding anything: assignor, timeouts, rights, restarts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgroup.admin.codes import UNSTORED
from kgroup.admin.migrate.models import (
    ASSIGNORS,
    BROKER_SESSION_TIMEOUT,
    DOWNGRADE,
    INFO,
    KNOWN_ASSIGNORS,
    OK,
    POLICIES,
    POLICY,
    SESSION_TIMEOUT,
    UNKNOWN,
    WARN,
    Check,
    Evidence,
    words,
)
from kgroup.admin.models import CLASSIC, CONSUMER, EMPTY, RANGE
from kgroup.admin.read.visibility import RIGHTS
from kgroup.admin.settings import number_of
from kgroup.admin.shell import command
from kgroup.domain import count_of, first_of

ASSIGNMENT_STRATEGY, DEFAULT_ASSIGNOR = "partition.assignment.strategy", RANGE
MAX_SIZE = "group.max.size"
DEFAULT_SESSIONS = frozenset({45_000, 10_000})
"""Java's defaults, since 3.0 and before, in ms."""
_DEFAULT_IDS = {"rdkafka": "librdkafka", "sarama": "sarama", "kgo": "franz-go"}
_VERSIONED = re.compile(r"(kafka-python|aiokafka)-(\d+\..+)")
_SINK = re.compile(r"connector-consumer-.+-\d+")


def consequences(gathered: Evidence) -> Iterator[Check]:
    """Yield what an upgrade changes beyond the protocol, for the members that still speak the classic one.

    None of it decides.
    """
    if gathered.group.state != EMPTY:
        yield from health(gathered)
        if gathered.group.type == CLASSIC:
            yield _assignor(gathered)
        yield _static_ids(gathered)
    yield _session_timeout(gathered)
    yield Check(
        "acls",
        INFO,
        "members need READ on the group and DESCRIBE on every topic they name (READ implies it); one topic "
        "without it refuses the whole heartbeat with TOPIC_AUTHORIZATION_FAILED",
    )
    yield _client_software(gathered)
    if gathered.group.state != EMPTY:
        yield _client_settings(gathered)
        yield _after(gathered)


def _after(gathered: Evidence) -> Check:
    """Return when the group changes its type, and with which of its members."""
    value = str((gathered.settings or {}).get(POLICY)).lower()
    stay, most = len(gathered.remaining), gathered.number(MAX_SIZE)
    because = f"{MAX_SIZE}={most}" if most is not None and stay > most else f"{POLICY}={value}"
    if value in POLICIES[DOWNGRADE] and (most is None or stay <= most):
        back = "it converts back"
    elif POLICY in (gathered.settings or {}):
        stays = f"it stays a consumer group ({because})"
        back = f"{stays}, and what that one had has no owner until one joins"
    else:
        back = f"{POLICY} decides whether it converts back"
    there = [m for m in gathered.group.known_members if m.protocol == CONSUMER]
    first = "" if there else "the first consumer-protocol member converts the group; "
    last = f"the last one, now {there[0].called}," if len(there) == 1 else "the last one"
    message = f"{first}when {last} leaves while classic members stay, {back}"
    return Check("after", INFO, message, None, {"consumer": [m.name for m in there]})


def health(gathered: Evidence) -> Iterator[Check]:
    """Yield what is wrong with the group before the roll: afterwards it would look like the roll's doing."""
    hint = f"see to it before the roll: {command('doctor', gathered.group.group_id)}"
    if (hidden := gathered.findings_error) is not None:
        # Rights that a roll does not need decide nothing; brokers that do not answer may hide anything.
        status = INFO if hidden.code in RIGHTS else UNKNOWN
        message = f"whether the group is healthy now is unknown: {hidden.message}"
        yield Check("health", status, message, hint, {}, hidden.code)
    elif wrong := [e for e in gathered.findings if e.severity != INFO and e.code != UNSTORED]:
        codes = list(dict.fromkeys(finding.code for finding in wrong))
        said = first_of([f"{finding.code} {finding.message}" for finding in wrong], 2, "; ")
        yield Check("health", WARN, f"not healthy before the roll: {said}", hint, {"findings": codes})


def software_of(group_id: str, client_id: str) -> str | None:
    """Return the client library with this default client id, with its version if it has it; else None."""
    if client_id.startswith(f"consumer-{group_id}-"):
        return "Java"
    if _SINK.fullmatch(client_id):
        return "Kafka Connect"
    if versioned := _VERSIONED.fullmatch(client_id):
        return " ".join(versioned.groups())
    return _DEFAULT_IDS.get(client_id)


def _client_software(gathered: Evidence) -> Check:
    ids = [member.client_id or "" for member in gathered.remaining]
    names = [software_of(gathered.group.group_id, client_id) for client_id in ids]
    software = {name: names.count(name) for name in sorted({known for known in names if known is not None})}
    evidence = {"client_ids": sorted(set(ids)), "software": software or None}
    needs = "group.protocol=consumer needs Java 4.0 or librdkafka 2.12 (both general availability)"
    if not software:
        message = f"unknown: no request shows which client a member runs; {needs}"
    else:
        counts = ", ".join(
            f"{name} ({count} of {count_of(len(ids), 'member')})" for name, count in software.items()
        )
        message = f"by default client ids: {counts}; {needs}"
    return Check("client_software", INFO, message, None, evidence)


def _client_settings(gathered: Evidence) -> Check:
    """Return the settings with which clients refuse to start in the consumer protocol, as far as visible."""
    shown = {}
    used = gathered.group.assignor if gathered.group.type == CLASSIC else None
    if used is not None and used != DEFAULT_ASSIGNOR:
        shown[ASSIGNMENT_STRATEGY] = used
    timeouts = (
        sorted(set(gathered.logged.session_timeouts.values()) - DEFAULT_SESSIONS) if gathered.logged else []
    )
    if timeouts:
        shown["session.timeout.ms"] = ", ".join(map(str, timeouts))
    refused = f"with {ASSIGNMENT_STRATEGY}, session.timeout.ms or heartbeat.interval.ms set, Java and "
    refused += "librdkafka clients do not start in the consumer protocol"
    evidence = {"settings": shown or None}
    if not shown:
        return Check("client_settings", INFO, f"{refused}; unknown whether they are set", None, evidence)
    values = ", ".join(f"{name} ({value} is not the default)" for name, value in shown.items())
    hint = "remove these settings together with the change of group.protocol"
    return Check("client_settings", WARN, f"{refused}; set here: {values}", hint, evidence)


def _assignor(gathered: Evidence) -> Check:
    offered = words((gathered.settings or {}).get(ASSIGNORS, ""))
    used = gathered.group.assignor
    evidence = {"assignor": used, ASSIGNORS: list(offered) or None}
    if used is not None and used not in KNOWN_ASSIGNORS:
        message = f"assignor {used} runs in the clients; no broker has it, members get the broker's own"
        return Check("assignor", WARN, message, "see whether uniform or range will do", evidence)
    if not offered:
        return Check(
            "assignor", INFO, f"{used} now; unknown which assignors the broker offers", None, evidence
        )
    if used == RANGE and offered[0] != RANGE and RANGE in offered:
        message = f"range now; {offered[0]} after, unless clients ask for range"
        return Check("assignor", INFO, message, "group.remote.assignor=range keeps range", evidence)
    return Check("assignor", INFO, f"{used or 'not shown'} now; {offered[0]} after", None, evidence)


def _static_ids(gathered: Evidence) -> Check:
    members = gathered.remaining
    static = [member.instance_id for member in members if member.instance_id]
    if not all(member.instance_id_known for member in members):
        message = "unknown: this broker does not report instance ids (Kafka 2.4 and later do)"
        return Check("static_ids", INFO, message, None, {"instance_ids": None, "dynamic": None})
    evidence = {"instance_ids": sorted(static), "dynamic": len(members) - len(static)}
    if not static:
        message = "none: each restart of the roll moves partitions (leave, then join)"
        return Check("static_ids", INFO, message, None, evidence)
    if len(static) < len(members):
        share = f"{len(static)} of {count_of(len(members), 'member')}"
        message = f"{share} are static; restarts of the others move partitions"
        return Check("static_ids", INFO, message, None, evidence)
    message = (
        f"{len(static)} unique: {first_of(sorted(static))} (a successor under the same id takes the place)"
    )
    return Check("static_ids", OK, message, None, evidence)


def _session_timeout(gathered: Evidence) -> Check:
    ahead = session_ahead(gathered)
    clients = sorted(set(gathered.logged.session_timeouts.values())) if gathered.logged else []
    evidence = {SESSION_TIMEOUT: ahead, "clients_ms": clients or None}
    ahead_ms = number_of(ahead)
    after = "an unknown timeout" if ahead_ms is None else f"{ahead_ms / 1000:g} s"
    if gathered.own_error is not None:
        after += f" ({gathered.own_error})"
    hint = command("config set", gathered.group.group_id, options=f"{SESSION_TIMEOUT}=MS")
    if not clients:
        message = f"unknown what the clients use (--read-log shows); from the group's config then: {after}"
        # Where the broker shows no settings of the group, none can be set.
        return Check("session_timeout", INFO, message, hint if ahead_ms is not None else None, evidence)
    before = ", ".join(f"{ms / 1000:g} s" for ms in clients)
    message = f"clients use {before}; consumer-protocol members get {after} from the group's config"
    if ahead_ms is None:
        return Check("session_timeout", INFO, message, None, evidence)
    if max(clients) > ahead_ms:
        return Check("session_timeout", WARN, message, hint, evidence)
    return Check("session_timeout", OK, message, None, evidence)


def session_ahead(gathered: Evidence) -> str | None:
    """Return the consumer protocol's session timeout in ms; None if the group's settings are unknown."""
    if gathered.own_settings is None:
        return None
    return gathered.own_settings.get(SESSION_TIMEOUT) or (gathered.settings or {}).get(BROKER_SESSION_TIMEOUT)
