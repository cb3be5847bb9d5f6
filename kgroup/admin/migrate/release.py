"""What blocks Kafka 5.0, whose Java consumer defaults to the consumer protocol (KIP-1274)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.checks import served
from kgroup.admin.migrate.evidence import serving
from kgroup.admin.migrate.fleet import Fleet
from kgroup.admin.migrate.models import ALREADY, BLOCK, BLOCKED, INFO, OK, READY, UNKNOWN, WARN, Check
from kgroup.admin.models import CLASSIC
from kgroup.admin.refusals import code_name
from kgroup.admin.shell import command
from kgroup.domain import count_of
from kgroup.errors import KgroupError

KEEP = "until then give their clients group.protocol=classic, which Kafka 5.0 has and 6.0 removes"


def against_kafka_5(cluster: ClusterView, fleet: Fleet) -> tuple[Check, ...]:
    """Return the checks of brokers and `fleet` for a client of Kafka 5.0 with its default protocol."""
    return (*_brokers(cluster), *_groups(fleet))


def _brokers(cluster: ClusterView) -> Iterator[Check]:
    """Yield the check of a group's plan for every broker; a common result appears once."""
    reports = serving(cluster, {broker.id: () for broker in cluster.brokers()})
    fine = []
    for broker, report in reports.items():
        if isinstance(report, KgroupError):
            message, code = f"broker {broker}: {report.message}", code_name(report)
            yield Check("consumer_protocol", UNKNOWN, message, report.hint, {"broker": broker}, code)
            continue
        for check in served(report):
            if check.status == OK:
                fine.append(broker)
            elif check.status == BLOCK:
                yield replace(check, message=f"broker {broker}: {check.message}")
            else:
                yield check
        if report.settings is None and report.refusal is not None:
            message = f"broker {broker}: whether a setting turns the protocol off: {report.refusal.message}"
            evidence = {"broker": broker}
            yield Check(
                "consumer_protocol", UNKNOWN, message, report.refusal.hint, evidence, report.refusal.name
            )
    if fine:
        message = f"served by {len(fine)} of {count_of(len(reports), 'broker')}"
        yield Check("consumer_protocol", OK, message, None, {"brokers": fine})


def _groups(fleet: Fleet) -> Iterator[Check]:
    plan = command("upgrade plan", options="--all-groups")
    by_verdict = {
        verdict: [row.group_id for row in fleet.rows if row.verdict == verdict]
        for verdict in (BLOCKED, UNKNOWN, READY, ALREADY)
    }
    if blocked := by_verdict[BLOCKED]:
        message = f"{count_of(len(blocked), 'group')} would refuse a client of Kafka 5.0 that joins with its "
        message += "default, with GROUP_ID_NOT_FOUND"
        hint = f"{plan} says what to change; {KEEP}"
        yield Check("groups_blocked", BLOCK, message, hint, {"groups": blocked})
    if unknown := by_verdict[UNKNOWN]:
        message = f"of {count_of(len(unknown), 'group')} it is not known whether such a client could join"
        reasons = {check.reason for row in fleet.rows if row.verdict == UNKNOWN for check in row.unknown}
        reason = reasons.pop() if len(reasons) == 1 else None
        yield Check("groups_unknown", UNKNOWN, message, f"{plan} says why", {"groups": unknown}, reason)
    refusing = [row.group_id for row in fleet.rows if "client_settings" in row.warnings]
    if refusing:
        message = (
            f"clients of {count_of(len(refusing), 'group')} set what Kafka 5.0 refuses with its default "
        )
        message += "protocol: partition.assignment.strategy, session.timeout.ms or heartbeat.interval.ms"
        hint = f"remove the settings; {KEEP}"
        yield Check("client_settings", WARN, message, hint, {"groups": refusing})
    ready = [row.group_id for row in fleet.rows if row.verdict == READY and row.type == CLASSIC]
    if ready:
        message = f"{count_of(len(ready), 'group')} will be converted by their first client of Kafka 5.0, "
        message += "without a change of settings"
        yield Check("groups_ready", WARN, message, f"move them before: {plan}", {"groups": ready})
    if moved := by_verdict[ALREADY]:
        message = f"{count_of(len(moved), 'group')} moved already"
        yield Check("groups_moved", OK, message, None, {"groups": moved})
    if fleet.left_out:
        names = [out.group_id for out in fleet.left_out]
        message = f"{count_of(len(names), 'group')} have a protocol of their own, which stays"
        yield Check("groups_left_out", INFO, message, None, {"groups": names})
