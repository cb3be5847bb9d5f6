"""What is wrong in a look, by its cause: what several groups suffer from together is one thing.

A cause outside a group is named only where the evidence shows it: a topic that does not exist, a transaction
that does not end, brokers that do not answer, a host on which no member goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kgroup.admin.codes import CODES, DAMAGED_LOG, UNSTORED, UNTRANSACTED
from kgroup.admin.diagnose.deleted_offsets import REMOVED
from kgroup.admin.diagnose.doctor import Checkup
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.read.findings import SHOWN
from kgroup.admin.recording.look import Look, rebalanced
from kgroup.admin.shell import command, word
from kgroup.admin.statuses import ERROR, INFO, NOT_THE_SAME_TOPIC, PROMPT_MS, WARN, PartitionStatus
from kgroup.domain import OFFSETS_TOPIC, count_of, first_of
from kgroup.history.fold.explain import blame

NO_RECORD = "no record says"
BROKERS = "brokers"
DOWN = frozenset(
    {
        "UNREACHABLE",
        "LEADER_NOT_AVAILABLE",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_ENOUGH_REPLICAS",
        "NETWORK_EXCEPTION",
        "REQUEST_TIMED_OUT",
    }
)
_OF_TOPICS = frozenset({"KG302", "KG303", "KG313", "KG319", DAMAGED_LOG})
_OF_TRANSACTIONS = frozenset({"KG309", "KG311"})
_OF_SILENCE = frozenset({"KG310"})
_PASSING = frozenset({"KG101", "KG102", "KG103", "KG306"})
"""Warnings that every deployment brings; what lasts of them becomes an error."""
_OF_REBALANCES = frozenset({"KG110", "KG111", "KG112", "KG119"})
"""Findings about the last rebalance, or one under way; of no other does a record say who did it."""
_OF_ASSIGNMENT = "KG104"


@dataclass(frozen=True, slots=True)
class Bad:
    """One thing that is wrong with a group, and the key of its cause."""

    key: str
    group: str
    code: str
    severity: str
    title: str
    evidence: tuple[str, ...]
    run: str
    caused_by: str = NO_RECORD
    records: tuple[str, ...] = ()
    """The records that prove who caused it."""


def bad_of(
    now: Look, brokers: Mapping[int, str], severity: str = ERROR, before: Look | None = None
) -> list[Bad]:
    """Return what is wrong, from this severity on, after the look `before`; `brokers` are all ever seen."""
    unstored = {
        name: finding.message
        for name, checkup in now.checkups.items()
        for finding in checkup.findings
        if finding.code in (UNSTORED, UNTRANSACTED) and finding.severity == ERROR
    }
    down = list(_down(now, brokers, unstored))
    suffering = {bad.group for bad in down}
    others = [
        bad
        for name, checkup in now.checkups.items()
        # What is not seen, or not stored, because a broker is down says nothing else about the group.
        if name not in suffering or (checkup.healthy is False and name not in unstored)
        for bad in _of_group(name, checkup, now.facts[name], severity, before)
    ]
    return [*down, *_by_host(others, now)]


def _of_group(name: str, checkup: Checkup, facts: Facts, severity: str, before: Look | None) -> Iterator[Bad]:
    own = f"group {name}"
    for finding in checkup.findings:
        topics = _topics(facts, finding.code) if finding.code in _OF_TOPICS else []
        warned = severity == WARN == finding.severity and finding.code not in _PASSING
        counts = finding.severity == ERROR or warned
        if not counts and not (topics and finding.severity != INFO):
            continue
        evidence = (*finding.evidence[:SHOWN], *(() if finding.hint is None else (f"next: {finding.hint}",)))
        bad = Bad(own, name, finding.code, finding.severity, f"{name}: {finding.message}", evidence, "")
        if _is_explained(finding.code, facts, before):
            caused_by, records = _cause(name, facts)
            bad = replace(bad, caused_by=caused_by, records=records)
        if topics:
            for topic in topics:
                title = f"topic {topic}: {CODES[finding.code].title.lower()}"
                yield replace(bad, key=f"topic {topic}", title=title, run=_run(finding.code, name, topic))
        elif finding.code in _OF_TRANSACTIONS and (holding := _transactions(facts)):
            for transaction in holding:
                title = f"transaction {transaction} does not end"
                yield replace(
                    bad, key=f"transaction {transaction}", title=title, run=_run(finding.code, name)
                )
        else:
            yield replace(bad, run=_run(finding.code, name))
    if not any(f.severity == ERROR for f in checkup.findings):
        for status in (s for s in checkup.statuses if s.weight == ERROR):
            title = f"{name}: {first_of(status.partitions)} {status.status}: {status.why}"
            yield Bad(own, name, status.status, ERROR, title, (), command("doctor", name))


def _run(code: str, group: str, topic: str | None = None) -> str:
    known = CODES[code].next[0]
    if "GROUP" not in known or ("TOPIC" in known and topic is None):
        return command("doctor", group)
    return known.replace("GROUP", word(group)).replace("TOPIC", word(topic or ""))


def _topics(facts: Facts, code: str) -> list[str]:
    """Return the topics that are gone, were created again, or are damaged, as far as the facts name them."""
    if code == DAMAGED_LOG:
        return sorted({partition.topic for partition, _, _ in facts.with_status(PartitionStatus.DAMAGED)})
    rows = {
        row.topic
        for row in facts.group.offsets
        if row.gone or (row.status is not None and row.status.name in NOT_THE_SAME_TOPIC)
    }
    held = {partition.topic for places in facts.log.gone.values() for partition in places}
    lost = {p.topic for event in facts.recent if event.kind in REMOVED for p in event.partitions}
    return sorted(rows | held | (lost & facts.gone_topics))


def _transactions(facts: Facts) -> list[str]:
    open_ = {transaction for those in facts.holding.values() for transaction in those} | {*facts.transactions}
    return sorted({transaction.transactional_id for transaction in open_ if transaction.transactional_id})


def _is_explained(code: str, facts: Facts, before: Look | None) -> bool:
    """Return whether the last rebalance explains a finding, not only comes before it.

    One that left partitions out was completed since the look before, which had the same partitions: none was
    added. What a classic group waits for has no record before it is over.
    """
    if code == _OF_ASSIGNMENT:
        name = facts.group.group_id
        if before is None or name not in before.lags:
            return False
        had = {row.place for row in before.lags[name].offsets}
        none_added = had == {partition for partition, _ in facts.rows}
        return none_added and before.rebalanced.get(name) != rebalanced(facts)
    return code in _OF_REBALANCES and not facts.rebalances


def _cause(name: str, facts: Facts) -> tuple[str, tuple[str, ...]]:
    """Return what the records say of the last rebalance within the window, and these records."""
    for blamed in blame(facts.recent, name):
        event = blamed.event
        if blamed.about == "rebalance" and event.cause and event.proven:
            records = (*blamed.evidence, event)
            where = f"{OFFSETS_TOPIC}-{event.log_partition} offset"
            shown = tuple(f"{where} {record.offset}: {record.detail}" for record in records[-SHOWN:])
            return f"{event.detail}, because {event.cause} ({where} {event.offset})", shown
    return NO_RECORD, ()


def _down(now: Look, brokers: Mapping[int, str], unstored: Mapping[str, str]) -> Iterator[Bad]:
    """Yield what is not seen, not stored, or has no leader, because brokers do not answer."""
    gone = sorted(brokers.keys() - {broker.id for broker in now.brokers})
    names = first_of([f"{node} ({brokers[node]})" for node in gone])
    title = f"broker {names} is not in the cluster's metadata" if gone else "a broker does not answer"
    if now.failed is not None:
        if now.failed.code in DOWN:
            said, run = (now.failed.message,), "kgroup cluster status"
            for name in now.hidden or ("",):
                yield Bad(BROKERS, name, now.failed.code, ERROR, "no broker answers", said, run)
        return
    reasons = [(name, error.code, error.message) for name, error in now.errors.items()]
    reasons += [(n, error.code, error.message) for error in now.unseen for n in now.hidden or ("",)]
    for name, checkup in now.checkups.items():
        reasons += [(name, error.code, error.message) for error in checkup.unseen]
        reasons += [
            (name, "LEADER_NOT_AVAILABLE", f"{first_of(s.partitions)}: {s.why}")
            for s in checkup.statuses
            if s.status == PartitionStatus.UNLEADERED
        ]
    reasons += [(name, "NOT_ENOUGH_REPLICAS", message) for name, message in unstored.items()]
    for name, code, message in reasons:
        if code in DOWN:
            yield Bad(BROKERS, name, code, ERROR, title, (message,), "kgroup cluster topics")


def _by_host(troubles: list[Bad], now: Look) -> Iterator[Bad]:
    """Yield the same; where no member on a host that has work goes on, in several groups, as one."""
    silent: dict[str, list[Bad]] = {}
    # The signs of life of each host, and the last ones of its silent members.
    signs: dict[str, list[int]] = {}
    last: dict[str, list[int]] = {}
    going: set[str] = set()
    for facts in now.facts.values():
        for status, host, at_ms in _owners(facts):
            if status == PartitionStatus.READING:
                going.add(host)
            (last if status == PartitionStatus.STALLED else signs).setdefault(host, []).append(at_ms)
    # As with the partitions of a group: others were served meanwhile.
    going |= {host for host, at in last.items() if max(signs.get(host, [-1])) >= min(at) + PROMPT_MS}
    for bad in troubles:
        hosts = _silent_hosts(now.facts[bad.group]) if bad.code in _OF_SILENCE else set()
        if len(hosts) == 1 and not hosts & going:
            silent.setdefault(hosts.pop(), []).append(bad)
            continue
        yield bad
    for host, those in silent.items():
        groups = {bad.group for bad in those}
        title = f"no member on host {host} that has work goes on, in {count_of(len(groups), 'group')}"
        key = f"host {host}"
        yield from (replace(bad, key=key, title=title) if len(groups) > 1 else bad for bad in those)


def _silent_hosts(facts: Facts) -> set[str]:
    return {host for status, host, _ in _owners(facts) if status == PartitionStatus.STALLED}


def _owners(facts: Facts) -> Iterator[tuple[PartitionStatus, str, int]]:
    """Yield the status, the owner's host and the last commit in ms (-1: unknown) of each owned partition.

    Where a host is unknown it proves nothing about others.
    """
    hosts = {member.member_id: member.host for member in facts.group.known_members if member.host}
    for partition, row in facts.rows:
        if row.status is not None and row.member_id in hosts:
            yield row.status.name, hosts[row.member_id], facts.log.committed_ms.get(partition, -1)
